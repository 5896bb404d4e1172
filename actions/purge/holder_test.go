package purge_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// moves are ways in which the disk of osd.12 comes to p9 while a purge of w1
// waits.
var moves = map[string]func(s *whole){
	"and Rook bound its Deployment to the machine": func(s *whole) {
		s.ceph.MoveOSD(12, "p9")
		s.rook.AddOSDOf(s.ref(12), "p9")
	},
	"which runs it without Rook":                     func(s *whole) { s.ceph.MoveOSD(12, "p9") },
	"and is about to start there":                    func(s *whole) { s.rook.AddOSDOf(s.ref(12), "p9") },
	"and is about to start there, which has no UUID": func(s *whole) { s.rook.AddOSD(12, "p9") },
	"and is about to start where nobody can tell":    func(s *whole) { s.rook.AddOSDOf(s.ref(12), "") },
	"and is about to start there under another name": func(s *whole) { s.rook.AddOSDOf(ceph.Ref{ID: rook.UnknownOSD, UUID: s.uuid(12)}, "p9") },
	"runs there, and its CRUSH host is still its old one": func(s *whole) {
		s.ceph.MoveOSD(12, "w1")
		s.rook.AddOSDOf(s.ref(12), "p9")
	},
}

func (s *whole) ref(id int) ceph.Ref { return ceph.Ref{ID: id, UUID: s.uuid(id)} }

// wantLeft checks that osd.12 is as it was but for where it is, that nothing was
// done to it, and that all else of the node is gone.
func (s *whole) wantLeft(in bool) {
	s.T.Helper()
	if osd, ok := s.ceph.Snapshot().OSD(12); !ok || osd.UUID != s.uuid(12) || osd.In() != in {
		s.T.Errorf("osd.12, which is another machine's, is %+v; %q", osd, s.Story())
	}
	for _, effect := range s.ceph.Effects() {
		if strings.Contains(effect.Name, "12") && effect.Name != "osd-down 3,12,107" && effect.Name != "osd-out 3,12,107" {
			s.T.Errorf("%s; %q", effect.Name, s.Story())
		}
	}
	for _, id := range []int{3, 107} {
		if _, ok := s.ceph.Snapshot().OSD(id); ok {
			s.T.Errorf("osd.%d of the lost node is left; %q", id, s.Story())
		}
	}
	if in && strings.Contains(s.LastLine(), "ceph osd in") {
		s.T.Errorf("osd.12 was never marked out, and the purge %s", s.LastLine())
	}
	if s.NodeExists() || slices.Contains(s.rook.Nodes(), "w1") {
		s.T.Errorf("left are %q", s.traces())
	}
}

// wantSaid checks that the purge has ended, and how it speaks of osd.12.
func (s *whole) wantSaid() {
	s.T.Helper()
	if got := s.LastLine(); !strings.HasPrefix(got, "ended done") || !strings.Contains(got, "osd.12 ") {
		s.T.Errorf("the purge %s; %q", got, s.Story())
	}
	if s.Count("left osd.12") != 1 {
		s.T.Errorf("that osd.12 is left alone is not on record once: %q", s.Story())
	}
}

func TestADiskThatMovedWhileCephDidNotAnswerIsNotPurged(t *testing.T) {
	for how, move := range moves {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ceph.Outage(true)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(time.Hour)
				move(s)
				s.ceph.LoseHost("p9") // it reboots, too
				s.ceph.Outage(false)
				r.End()
				s.wantLeft(true)
				s.wantSaid()
				s.wantMovedDeployment()
			})
		})
	}
}

// wantMovedDeployment checks that what runs osd.12 now was not touched.
func (s *whole) wantMovedDeployment() {
	s.T.Helper()
	for _, d := range s.rook.Deployments() {
		if d.Replicas != 1 {
			s.T.Errorf("Deployment %+v was scaled down", d)
		}
	}
	for _, effect := range s.rook.Effects() {
		if effect.Name == "delete-deployment rook-ceph-osd--1" || s.rook.Count("delete-deployment rook-ceph-osd-12") > 1 {
			s.T.Errorf("%s; %q", effect.Name, s.Story())
		}
	}
}

// waitsForMgr runs the purge until it waits, before osd.12 is purged, for a mgr.
func (s *whole) waitsForMgr() *actionstest.Running {
	s.ceph.AfterEffect = func(effect string) {
		if strings.HasPrefix(effect, "osd-out") {
			s.ceph.LoseMgr(true)
		}
	}
	s.ask(journal.ActionRequested{Manual: true})
	r := s.Start(s.cfg())
	s.Pass(time.Hour)
	return r
}

func TestAMachineThatRebootsKeepsTheDiskThatMovedToIt(t *testing.T) {
	for how, move := range moves {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := s.waitsForMgr()
				move(s)
				s.Pass(time.Hour)
				s.ceph.LoseHost("p9")
				s.ceph.LoseHost("w1")
				s.ceph.LoseMgr(false)
				r.End()
				s.wantLeft(false)
				s.wantSaid()
				s.wantMovedDeployment()
			})
		})
	}
}

func TestADiskThatWasSeenOnAnotherMachineIsLeftAloneForGood(t *testing.T) {
	for how, move := range moves {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := s.waitsForMgr()
				move(s)
				s.Pass(time.Hour)
				r.Halt()
				// While no EKCO looks, every trace of the other machine goes.
				s.ceph.MoveOSD(12, "w1")
				s.ceph.LoseHost("w1")
				s.removeOSDs(12, rook.UnknownOSD)
				s.ceph.LoseMgr(false)
				s.RunToEnd(s.cfg())
				s.wantLeft(false)
				s.wantSaid()
			})
		})
	}
}

func TestADeploymentThatWasBoundToAnotherMachineIsNotRemoved(t *testing.T) {
	for when, forbidden := range map[string][]string{
		"while it could not be removed": {"update deployments"},
		"while Rook could not be read":  {"list deployments", "get cephclusters"},
	} {
		t.Run(when, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.rook.Forbid(forbidden...)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(10 * time.Second)
				s.rook.BindOSD(12, "p9")
				s.rook.Allow(forbidden...)
				r.End()
				if on := s.deploymentsOn("p9"); len(on) != 1 {
					t.Errorf("on p9 are %q; %q", on, s.Story())
				}
				s.wantLeft(true)
				s.wantMovedDeployment()
			})
		})
	}
}

// pausedAfterCheck runs an automatic purge until it waits, right after its check,
// for a pause to end.
func (s *whole) pausedAfterCheck() *actionstest.Running {
	cfg, paused := s.cfg(), actionstest.NewPreflight(actions.Pass())
	cfg.Preflights["Paused"] = actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
		verdict := paused.Check(ctx, record)
		paused.SetVerdict(actions.Hold("paused"))
		return verdict
	})
	s.ask(journal.ActionRequested{})
	r := s.Start(cfg)
	s.Pass(time.Minute)
	return r
}

func TestADeploymentThatWasBoundToAnotherMachineDuringAPauseIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.pausedAfterCheck()
		s.wantAll()
		s.rook.BindOSD(12, "p9")
		r.Halt()
		s.RunToEnd(s.cfg())
		s.wantLeft(true)
		s.wantMovedDeployment()
		if on := s.deploymentsOn("p9"); len(on) != 1 {
			t.Errorf("on p9 are %q; %q", on, s.Story())
		}
	})
}

// beforeDeployments holds the purge by hand before any Deployment is removed.
func (s *whole) beforeDeployments() *actionstest.Running {
	s.rook.Forbid("update deployments")
	s.ask(journal.ActionRequested{Manual: true})
	r := s.Start(s.cfg())
	s.Pass(5 * time.Second)
	return r
}

func TestAMachineThatWasInstalledAnewWithItsOldDisksKeepsItsOSDsBeforeTheyRun(t *testing.T) {
	for how, test := range map[string]struct {
		until func(s *whole) *actionstest.Running
		again func(s *whole)
	}{
		"Rook has made new Deployments for them": {(*whole).waitsForMgr, func(s *whole) {
			for _, ref := range s.refs {
				s.rook.AddOSDOf(ref, "w1")
			}
		}},
		"their old Deployments are still there": {(*whole).beforeDeployments, func(*whole) {}},
	} {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := test.until(s)
				s.Cluster.RemoveNode("w1")
				s.replaced()
				test.again(s)
				s.rook.Allow("update deployments")
				s.ceph.LoseMgr(false)
				r.End()
				for _, ref := range s.refs {
					if _, ok := s.ceph.Snapshot().OSD(ref.ID); !ok {
						t.Errorf("osd.%d of the new machine was purged; %q", ref.ID, s.Story())
					}
				}
				if on := s.deployments(); len(on) != 3 {
					t.Errorf("on the new machine are %q; %q", on, s.Story())
				}
				if got := s.LastLine(); !strings.Contains(got, "osd.3") || !strings.Contains(got, "osd.107") {
					t.Errorf("the purge %s", got)
				}
			})
		})
	}
}

// sharesHostname has a Node of another name join whose machine has the hostname, lists it,
// and gives its CRUSH host the OSD 50, which is about to start and has no Deployment
// yet.
func (s *whole) sharesHostname(name, hostname string) ceph.Ref {
	s.Cluster.AddNode(name, journal.RoleWorker)
	s.Cluster.SetHostname(name, hostname)
	s.rook.ListNode(hostname)
	crush := ceph.CrushName(hostname)
	fresh := s.ceph.AddHost(crush, 50)[0]
	s.ceph.LoseHost(crush)
	return fresh
}

func TestWhatANodeOfTheSameHostnameHasIsNotTheLostNodes(t *testing.T) {
	for how, test := range map[string]struct{ lost, joins string }{
		"though its name is another":    {"w1", "w1"},
		"as far as Ceph can tell":       {"w1.lan", "w1-lan"},
		"as far as Ceph can tell, also": {"w1-lan", "w1.lan"},
	} {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.Cluster.SetHostname("w1", test.lost)
				s.ceph.Outage(true)
				s.rook.Forbid(writesOfRook...)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(5 * time.Second)
				fresh := s.sharesHostname("w7", test.joins)
				s.ceph.Outage(false)
				s.rook.Allow(writesOfRook...)
				r.End()
				if osd, ok := s.ceph.Snapshot().OSD(50); !ok || osd.UUID != fresh.UUID || !osd.In() {
					t.Errorf("osd.50 is %+v; %q", osd, s.Story())
				}
				if _, ok := s.ceph.Snapshot().Host(ceph.CrushName(test.joins)); !ok {
					t.Errorf("the CRUSH host is gone; %q", s.Story())
				}
				if !slices.Contains(s.rook.Nodes(), test.joins) {
					t.Errorf("listed are %q; %q", s.rook.Nodes(), s.Story())
				}
				if got := s.LastLine(); !strings.Contains(got, "w7") {
					t.Errorf("the purge %s", got)
				}
			})
		})
	}
}

func TestWhatIsUnderTheHostnameOfAnotherNodeIsNotCaptured(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.AddNode("w7", journal.RoleWorker)
		s.Cluster.SetHostname("w7", "w1")
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107",
			"rook-ceph-osd-107", "rook-ceph-osd-12", "rook-ceph-osd-3", "storage entry")
		if effects := s.ceph.Effects(); len(effects) != 0 {
			t.Errorf("Ceph was told to %v", effects)
		}
		if got := s.LastLine(); !strings.HasPrefix(got, "ended done node w7 (uid ") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestTheOSDsOfANodeThatCephCannotTellFromTheLostOneAreNotCaptured(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.SetHostname("w1", "w1.lan")
		fresh := s.sharesHostname("w7", "w1-lan")
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		if osd, ok := s.ceph.Snapshot().OSD(50); !ok || osd.UUID != fresh.UUID || !osd.In() {
			t.Errorf("osd.50 is %+v; %q", osd, s.Story())
		}
		s.wantTraces("crush host []")
		if got := s.LastLine(); !strings.Contains(got, "CRUSH host w1-lan is left alone: it belongs to node w7") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestAMemberThatAnswersAgainUnderANewNodeIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		cfg := s.cfg()
		paused := actionstest.NewPreflight(actions.Pass())
		cfg.Preflights["Paused"] = paused
		s.Cluster.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "delete-node") {
				paused.SetVerdict(actions.Hold("paused"))
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.Start(cfg)
		s.Pass(time.Minute)
		// The machine comes back with its disk, and its kubelet registers it.
		s.replaced()
		s.etcd.Revive(s.member.ID)
		paused.SetVerdict(actions.Pass())
		r.End()
		if !slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == s.member.ID }) {
			t.Errorf("a member that answers was removed from a machine that is back; %q", s.Story())
		}
		if got := s.LastLine(); !strings.Contains(got, "etcd member") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestOSDsUnderTheNameThatCephHasForAHostnameWithDotsAreTheNodes(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.SetHostname("w1", "w1.lan")
		for _, ref := range s.refs {
			s.ceph.MoveOSD(ref.ID, "w1-lan")
			s.ceph.StopOSD(ref.ID)
		}
		s.ask(journal.ActionRequested{Manual: true})
		s.Start(s.cfg()).End()
		for _, ref := range s.refs {
			if osd, ok := s.ceph.Snapshot().OSD(ref.ID); ok {
				t.Errorf("osd.%d is left: %+v; %q", ref.ID, osd, s.Story())
			}
		}
	})
}
