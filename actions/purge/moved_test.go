package purge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// moved are ways in which the disk of osd.12 came to another machine, while the
// CRUSH map still has the OSD under w1.
var moved = map[string]func(s *whole){
	"to a machine with dots in its hostname": func(s *whole) {
		s.ceph.AddHost("p9-lan", 30)
		s.rook.AddOSD(30, "p9.lan")
		s.rook.AddOSD(12, "p9.lan")
	},
	"to a machine without a CRUSH host": func(s *whole) { s.rook.AddOSD(12, "p9") },
	"to where nobody can tell":          func(s *whole) { s.rook.AddOSD(12, "") },
}

// wantMoved checks that the OSD and its Deployment are as they were.
func (s *whole) wantMoved() {
	s.T.Helper()
	if osd, ok := s.ceph.Snapshot().OSD(12); !ok || !osd.Exists || !osd.In() {
		s.T.Errorf("osd.12 of another machine is %+v; %q", osd, s.Story())
	}
	all := s.rook.Deployments()
	if !slices.ContainsFunc(all, func(d rook.OSDDeployment) bool { return d.OSD == 12 }) {
		s.T.Errorf("the Deployment of osd.12 is gone: %+v", all)
	}
	for _, id := range []int{3, 107} {
		if _, ok := s.ceph.Snapshot().OSD(id); ok {
			s.T.Errorf("osd.%d of the lost node is left", id)
		}
	}
}

func TestADiskThatWasMovedToAnotherMachineIsNotPurgedWithItsOldNode(t *testing.T) {
	for where, move := range moved {
		t.Run(where, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				move(s)
				s.ask(journal.ActionRequested{})
				s.RunToEnd(s.cfg())
				s.wantMoved()
				if got := s.LastLine(); !strings.Contains(got, "CRUSH host w1 is left alone: it still holds osd.12") {
					t.Errorf("the purge %s", got)
				}
			})
		})
	}
}

func TestADiskThatWasMovedWhileCephDidNotAnswerIsNotFoundAmongTheNodesOSDs(t *testing.T) {
	for where, move := range moved {
		t.Run(where, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.removeOSDs(12)
				s.ceph.Outage(true)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(time.Hour)
				move(s)
				s.ceph.Outage(false)
				s.Pass(time.Hour)
				s.wantMoved()
				r.Halt()
			})
		})
	}
}

func TestADiskThatWasMovedIsNoTraceOfItsOldNode(t *testing.T) {
	for where, move := range moved {
		t.Run(where, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				move(s)
				s.Cluster.RemoveNode("w1")
				found := strings.Join(s.trace("w1").Found, "; ")
				if !strings.Contains(found, "with osd.3, osd.107") || strings.Contains(found, "osd.12") {
					t.Errorf("found %q", found)
				}
			})
		})
	}
}

func TestADeploymentOfAnOSDThatHadTheIDBeforeSpeaksForNoOther(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		// What is bound to p9 is not w1's osd.12, and what is bound to w1 not p2's osd.20.
		s.rook.AddOSDOf(ceph.Ref{ID: 12, UUID: "00000000-0000-0000-0000-00000000abcd"}, "p9")
		s.rook.AddOSDOf(ceph.Ref{ID: 20, UUID: "00000000-0000-0000-0000-00000000dcba"}, "w1")
		s.ceph.LoseHost("p2")
		s.ask(journal.ActionRequested{Manual: true})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if osd, ok := s.ceph.Snapshot().OSD(20); !ok || !osd.In() {
			t.Errorf("osd.20 of p2 is %+v; %q", osd, s.Story())
		}
	})
}

func TestTheUUIDThatADeploymentSaysIsRememberedWhileCephDoesNotAnswer(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		for _, ref := range s.refs {
			s.rook.AddOSDOf(ref, "w1")
		}
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		fresh := s.ceph.AddHost("w1", 12)[0] // the id was given again under the same host
		s.ceph.LoseHost("w1")
		s.rook.AddOSDOf(fresh, "p9")
		s.ceph.Outage(false)
		s.Pass(time.Hour)
		s.wantMoved()
		if osd, _ := s.ceph.Snapshot().OSD(12); osd.UUID != fresh.UUID {
			t.Errorf("osd.12 is %+v now", osd)
		}
		r.Halt()
	})
}
