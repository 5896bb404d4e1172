package purge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
	"github.com/replicatedhq/ekco/journal"
)

// replaced lets another machine join under the node's name.
func (s *whole) replaced() {
	s.Cluster.AddNode("w1", journal.RolePrimary)
	s.rook.ListNode("w1")
}

func TestAReplacementOfTheSameHostnameKeepsItsNewOSDs(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(24 * time.Hour)
		r.Halt()
		// The new machine has a new disk, the id 50 and, by hand, the id 12 again.
		s.replaced()
		fresh := s.ceph.AddHost("w1", 50, 12, 60) // 60 has no Deployment yet
		s.rook.AddOSD(50, "w1")
		s.rook.AddOSD(12, "w1")
		s.ceph.LoseHost("w1") // all of them are about to start
		s.ceph.Outage(false)
		s.RunToEnd(s.cfg())
		tree := s.ceph.Snapshot()
		for _, ref := range fresh {
			if osd, ok := tree.OSD(ref.ID); !ok || osd.UUID != ref.UUID || !osd.In() {
				t.Errorf("%+v of the replacement is %+v now; %q", ref, osd, s.Story())
			}
		}
		for _, id := range []int{3, 107} {
			if _, ok := tree.OSD(id); ok {
				t.Errorf("osd.%d of the lost node is left", id)
			}
		}
		if !slices.Contains(s.rook.Nodes(), "w1") {
			t.Error("the replacement is not listed any more")
		}
		if _, ok := tree.Host("w1"); !ok {
			t.Error("the CRUSH host of the replacement is gone")
		}
	})
}

func TestAMachineThatReturnsUnderANewNodeKeepsTheOSDsThatRunAgain(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-out") {
				s.ceph.Outage(true)
			}
		}
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.replaced()
		s.ceph.ReturnHost("w1")
		s.ceph.Outage(false)
		r.End()
		for _, ref := range s.refs {
			if _, ok := s.ceph.Snapshot().OSD(ref.ID); !ok {
				t.Errorf("osd.%d was purged while it ran", ref.ID)
			}
		}
	})
}

// outageBeforeOut makes Ceph unavailable from the removal of the Deployments on, so that
// the OSDs are captured and not marked out yet.
func (s *whole) outageBeforeOut() *actionstest.Running {
	s.rook.BeforeEffect = func(string) { s.ceph.Outage(true) }
	s.ask(journal.ActionRequested{Manual: true})
	r := s.Start(s.cfg())
	s.Pass(time.Hour)
	return r
}

func TestAnIDThatCephGaveAgainIsNotTheLostOSD(t *testing.T) {
	for name, test := range map[string]struct {
		before func(s *whole)
		run    func(s *whole) *actionstest.Running
	}{
		"of an OSD that was captured":           {func(*whole) {}, (*whole).outageBeforeOut},
		"of an OSD that only the CRUSH map had": {func(s *whole) { s.ceph.RemoveOSD(12) }, (*whole).outageBeforeOut},
		"of an OSD captured without its UUID":   {func(s *whole) { s.ceph.Outage(true) }, (*whole).outageBeforeOut},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				test.before(s)
				r := test.run(s)
				fresh := s.ceph.AddHost("p2", 12)[0]
				s.rook.AddOSD(12, "p2")
				s.ceph.LoseHost("p2") // it is about to start
				s.ceph.Outage(false)
				r.End()
				if osd, ok := s.ceph.Snapshot().OSD(12); !ok || osd.UUID != fresh.UUID || !osd.In() {
					t.Errorf("the new osd.12 is %+v", osd)
				}
				s.wantTraces()
			})
		})
	}
}

func TestTheEntryOfAReplacementStaysListed(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.Forbid(writesOfRook...)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(10 * time.Second)
		s.Cluster.RemoveNode("w1")
		s.Cluster.AddNode("w1", journal.RolePrimary)
		s.rook.Allow(writesOfRook...)
		r.End()
		if !slices.Contains(s.rook.Nodes(), "w1") {
			t.Error("the replacement is not listed any more")
		}
	})
}

func TestNothingUnderTheNameIsTheLostNodesOnceItWasReplacedBeforeThePlan(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.ReplaceNode("w1")
		s.ask(journal.ActionRequested{Manual: true})
		before := s.state()
		s.RunToEnd(s.cfg())
		if got := s.state(); got != before || !s.NodeExists() {
			t.Errorf("it went from %s to %s", before, got)
		}
	})
}

func TestTheEntryInAnotherCephClusterIsNotTheOneThatWasCaptured(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.Forbid(rooksim.PatchCephClusters)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(10 * time.Second)
		s.rook.ReplaceCluster("uid-another")
		s.rook.Allow(rooksim.PatchCephClusters)
		r.End()
		s.wantTraces("storage entry")
	})
}

func TestAPurgeThatLeavesEverythingToAReplacementSaysSoAtItsEnd(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.ReplaceNode("w1")
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantAll()
		if got := s.LastLine(); !strings.HasPrefix(got, "ended done another Node had the name w1") || !strings.Contains(got, "the etcd member") {
			t.Errorf("the purge %s", got)
		}
	})
}
