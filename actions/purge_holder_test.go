package actions_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
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
	s.t.Helper()
	if osd, ok := s.ceph.Snapshot().OSD(12); !ok || osd.UUID != s.uuid(12) || osd.In() != in {
		s.t.Errorf("osd.12, which is another machine's, is %+v; %q", osd, s.story())
	}
	for _, effect := range s.ceph.Effects() {
		if strings.Contains(effect.Name, "12") && effect.Name != "osd-down 3,12,107" && effect.Name != "osd-out 3,12,107" {
			s.t.Errorf("%s; %q", effect.Name, s.story())
		}
	}
	for _, id := range []int{3, 107} {
		if _, ok := s.ceph.Snapshot().OSD(id); ok {
			s.t.Errorf("osd.%d of the lost node is left; %q", id, s.story())
		}
	}
	if in && strings.Contains(s.lastLine(), "ceph osd in") {
		s.t.Errorf("osd.12 was never marked out, and the purge %s", s.lastLine())
	}
	if s.nodeExists() || slices.Contains(s.rook.Nodes(), "w1") {
		s.t.Errorf("left are %q", s.traces())
	}
}

// wantSaid checks that the purge has ended, and how it speaks of osd.12.
func (s *whole) wantSaid() {
	s.t.Helper()
	if got := s.lastLine(); !strings.HasPrefix(got, "ended done") || !strings.Contains(got, "osd.12 ") {
		s.t.Errorf("the purge %s; %q", got, s.story())
	}
	if s.count("left osd.12") != 1 {
		s.t.Errorf("that osd.12 is left alone is not on record once: %q", s.story())
	}
}

func TestADiskThatMovedWhileCephDidNotAnswerIsNotPurged(t *testing.T) {
	for how, move := range moves {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ceph.Outage(true)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.start(s.cfg())
				letPass(time.Hour)
				move(s)
				s.ceph.LoseHost("p9") // it reboots, too
				s.ceph.Outage(false)
				r.end()
				s.wantLeft(true)
				s.wantSaid()
				s.wantMovedDeployment()
			})
		})
	}
}

// wantMovedDeployment checks that what runs osd.12 now was not touched.
func (s *whole) wantMovedDeployment() {
	s.t.Helper()
	for _, d := range s.rook.Deployments() {
		if d.Replicas != 1 {
			s.t.Errorf("Deployment %+v was scaled down", d)
		}
	}
	for _, effect := range s.rook.Effects() {
		if effect.Name == "delete-deployment rook-ceph-osd--1" || s.rook.Count("delete-deployment rook-ceph-osd-12") > 1 {
			s.t.Errorf("%s; %q", effect.Name, s.story())
		}
	}
}

// waitsForMgr runs the purge until it waits, before osd.12 is purged, for a mgr.
func (s *whole) waitsForMgr() *running {
	s.ceph.AfterEffect = func(effect string) {
		if strings.HasPrefix(effect, "osd-out") {
			s.ceph.LoseMgr(true)
		}
	}
	s.ask(journal.ActionRequested{Manual: true})
	r := s.start(s.cfg())
	letPass(time.Hour)
	return r
}

func TestAMachineThatRebootsKeepsTheDiskThatMovedToIt(t *testing.T) {
	for how, move := range moves {
		t.Run(how, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := s.waitsForMgr()
				move(s)
				letPass(time.Hour)
				s.ceph.LoseHost("p9")
				s.ceph.LoseHost("w1")
				s.ceph.LoseMgr(false)
				r.end()
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
				letPass(time.Hour)
				r.halt()
				// While no EKCO looks, every trace of the other machine goes.
				s.ceph.MoveOSD(12, "w1")
				s.ceph.LoseHost("w1")
				s.removeOSDs(12, rook.UnknownOSD)
				s.ceph.LoseMgr(false)
				s.runToEnd(s.cfg())
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
				r := s.start(s.cfg())
				letPass(10 * time.Second)
				s.rook.BindOSD(12, "p9")
				s.rook.Allow(forbidden...)
				r.end()
				if on := s.deploymentsOn("p9"); len(on) != 1 {
					t.Errorf("on p9 are %q; %q", on, s.story())
				}
				s.wantLeft(true)
				s.wantMovedDeployment()
			})
		})
	}
}

// pausedAfterCheck runs an automatic purge until it waits, right after its check,
// for a pause to end.
func (s *whole) pausedAfterCheck() *running {
	cfg, paused := s.cfg(), answering(actions.Pass())
	cfg.Preflights["Paused"] = actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
		verdict := paused.Check(ctx, record)
		paused.turn(actions.Hold("paused"))
		return verdict
	})
	s.ask(journal.ActionRequested{})
	r := s.start(cfg)
	letPass(time.Minute)
	return r
}

func TestADeploymentThatWasBoundToAnotherMachineDuringAPauseIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.pausedAfterCheck()
		s.wantAll()
		s.rook.BindOSD(12, "p9")
		r.halt()
		s.runToEnd(s.cfg())
		s.wantLeft(true)
		s.wantMovedDeployment()
		if on := s.deploymentsOn("p9"); len(on) != 1 {
			t.Errorf("on p9 are %q; %q", on, s.story())
		}
	})
}

// beforeDeployments holds the purge by hand before any Deployment is removed.
func (s *whole) beforeDeployments() *running {
	s.rook.Forbid("update deployments")
	s.ask(journal.ActionRequested{Manual: true})
	r := s.start(s.cfg())
	letPass(5 * time.Second)
	return r
}

func TestAMachineThatWasInstalledAnewWithItsOldDisksKeepsItsOSDsBeforeTheyRun(t *testing.T) {
	for how, test := range map[string]struct {
		until func(s *whole) *running
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
				s.cluster.RemoveNode("w1")
				s.replaced()
				test.again(s)
				s.rook.Allow("update deployments")
				s.ceph.LoseMgr(false)
				r.end()
				for _, ref := range s.refs {
					if _, ok := s.ceph.Snapshot().OSD(ref.ID); !ok {
						t.Errorf("osd.%d of the new machine was purged; %q", ref.ID, s.story())
					}
				}
				if on := s.deployments(); len(on) != 3 {
					t.Errorf("on the new machine are %q; %q", on, s.story())
				}
				if got := s.lastLine(); !strings.Contains(got, "osd.3") || !strings.Contains(got, "osd.107") {
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
	s.cluster.AddNode(name, journal.RoleWorker)
	s.cluster.SetHostname(name, hostname)
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
				s.cluster.SetHostname("w1", test.lost)
				s.ceph.Outage(true)
				s.rook.Forbid(writesOfRook...)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.start(s.cfg())
				letPass(5 * time.Second)
				fresh := s.sharesHostname("w7", test.joins)
				s.ceph.Outage(false)
				s.rook.Allow(writesOfRook...)
				r.end()
				if osd, ok := s.ceph.Snapshot().OSD(50); !ok || osd.UUID != fresh.UUID || !osd.In() {
					t.Errorf("osd.50 is %+v; %q", osd, s.story())
				}
				if _, ok := s.ceph.Snapshot().Host(ceph.CrushName(test.joins)); !ok {
					t.Errorf("the CRUSH host is gone; %q", s.story())
				}
				if !slices.Contains(s.rook.Nodes(), test.joins) {
					t.Errorf("listed are %q; %q", s.rook.Nodes(), s.story())
				}
				if got := s.lastLine(); !strings.Contains(got, "w7") {
					t.Errorf("the purge %s", got)
				}
			})
		})
	}
}

func TestWhatIsUnderTheHostnameOfAnotherNodeIsNotCaptured(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.cluster.AddNode("w7", journal.RoleWorker)
		s.cluster.SetHostname("w7", "w1")
		s.ask(journal.ActionRequested{})
		s.runToEnd(s.cfg())
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107",
			"rook-ceph-osd-107", "rook-ceph-osd-12", "rook-ceph-osd-3", "storage entry")
		if effects := s.ceph.Effects(); len(effects) != 0 {
			t.Errorf("Ceph was told to %v", effects)
		}
		if got := s.lastLine(); !strings.HasPrefix(got, "ended done node w7 (uid ") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestTheOSDsOfANodeThatCephCannotTellFromTheLostOneAreNotCaptured(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.cluster.SetHostname("w1", "w1.lan")
		fresh := s.sharesHostname("w7", "w1-lan")
		s.ask(journal.ActionRequested{})
		s.runToEnd(s.cfg())
		if osd, ok := s.ceph.Snapshot().OSD(50); !ok || osd.UUID != fresh.UUID || !osd.In() {
			t.Errorf("osd.50 is %+v; %q", osd, s.story())
		}
		s.wantTraces("crush host []")
		if got := s.lastLine(); !strings.Contains(got, "CRUSH host w1-lan is left alone: it belongs to node w7") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestAMemberThatAnswersAgainUnderANewNodeIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		cfg := s.cfg()
		paused := answering(actions.Pass())
		cfg.Preflights["Paused"] = paused
		s.cluster.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "delete-node") {
				paused.turn(actions.Hold("paused"))
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.start(cfg)
		letPass(time.Minute)
		// The machine comes back with its disk, and its kubelet registers it.
		s.replaced()
		s.etcd.Revive(s.member.ID)
		paused.turn(actions.Pass())
		r.end()
		if !slices.ContainsFunc(s.etcd.List(), func(m etcd.Member) bool { return m.ID == s.member.ID }) {
			t.Errorf("a member that answers was removed from a machine that is back; %q", s.story())
		}
		if got := s.lastLine(); !strings.Contains(got, "etcd member") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestOSDsUnderTheNameThatCephHasForAHostnameWithDotsAreTheNodes(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.cluster.SetHostname("w1", "w1.lan")
		for _, ref := range s.refs {
			s.ceph.MoveOSD(ref.ID, "w1-lan")
			s.ceph.StopOSD(ref.ID)
		}
		s.ask(journal.ActionRequested{Manual: true})
		s.start(s.cfg()).end()
		for _, ref := range s.refs {
			if osd, ok := s.ceph.Snapshot().OSD(ref.ID); ok {
				t.Errorf("osd.%d is left: %+v; %q", ref.ID, osd, s.story())
			}
		}
	})
}
