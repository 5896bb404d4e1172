package actions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
	"github.com/replicatedhq/ekco/journal"
)

// writesOfRook are what EKCO may be forbidden to change of Rook.
var writesOfRook = []string{rooksim.PatchCephClusters, rooksim.UpdateDeployments, rooksim.DeleteDeployments}

// removeOSDs deletes Deployments behind everybody's back.
func (s *whole) removeOSDs(ids ...int) {
	for _, id := range ids {
		s.rook.RemoveOSD(id)
	}
}

func TestThePlanHoldsEverythingThatBelongedToThePrimaryBeforeAnythingIsTouched(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		plan, checks, err := actions.NewRunner(s.cfg()).Explain(s.t.Context(), s.record())
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, step := range plan.Steps {
			ids = append(ids, step.ID)
		}
		want := []string{
			"check", "remove-storage-entry",
			"remove-osd-deployment rook-ceph-osd-107", "remove-osd-deployment rook-ceph-osd-12", "remove-osd-deployment rook-ceph-osd-3",
			"out-osds", "purge-osd 3", "purge-osd 12", "purge-osd 107", "remove-crush-host",
			"delete-node", "remove-etcd-member", "remove-kubeadm-endpoint",
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Error(diff)
		}
		for _, check := range checks {
			if check.Verdict != actions.Pass() {
				t.Errorf("%s answers %v", check.Preflight, check.Verdict)
			}
		}
		s.wantAll()
		s.runToEnd(s.cfg())
		facts := s.facts()
		if facts.Storage == nil || facts.Etcd == nil || facts.Kubeadm == nil {
			t.Fatalf("captured %+v", facts)
		}
		for i, ref := range s.refs {
			if facts.Storage.OSDs[i].Ref != ref {
				t.Errorf("captured %+v, want %+v", facts.Storage.OSDs[i], ref)
			}
		}
		if facts.Storage.CrushHost != "w1" || facts.Storage.Entry.Name != "w1" || len(facts.Storage.Deployments) != 3 {
			t.Errorf("captured %+v", facts.Storage)
		}
		if diff := cmp.Diff(&s.member, facts.Etcd.Member); diff != "" {
			t.Error(diff)
		}
		if slices.ContainsFunc(facts.Etcd.Endpoints, func(e string) bool { return strings.Contains(e, s.node.Facts.InternalIP) }) {
			t.Errorf("the dead member is asked: %v", facts.Etcd.Endpoints)
		}
		if facts.Kubeadm.Endpoint == nil || facts.Kubeadm.Endpoint.AdvertiseAddress != s.node.Facts.InternalIP {
			t.Errorf("captured %+v", facts.Kubeadm)
		}
	})
}

func TestQ8D3D15Q10EveryOSDIsPurgedWhateverItsIDAndThenTheCrushHost(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		s.runToEnd(s.cfg())
		s.wantTraces()
		s.wantOthers()
		for _, id := range []int{3, 12, 107} {
			if got := s.ceph.Count(fmt.Sprintf("osd-purge %d", id)); got != 1 {
				t.Errorf("osd.%d was purged %d times", id, got)
			}
		}
	})
}

func TestQ28OSDsWhoseDeploymentsAreGoneAreFoundInTheCrushTree(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(3, 12, 107)
		s.ceph.RemoveOSD(12) // by hand, as people do: the CRUSH map keeps it
		s.ask(journal.ActionRequested{})
		s.runToEnd(s.cfg())
		s.wantTraces()
		s.wantOthers()
	})
}

func TestAnOSDThatRookRunsElsewhereIsNotTheNodesThoughItsCrushHostSaysSo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12)
		s.rook.AddOSD(12, "p2")
		s.ask(journal.ActionRequested{})
		r := s.start(s.cfg())
		letPass(time.Hour)
		if _, ok := s.ceph.Snapshot().OSD(12); !ok || s.ceph.Count("osd-purge 12") != 0 {
			t.Error("an OSD of another node was purged")
		}
		if reason := s.record().Stalled.Reason; !strings.Contains(reason, "osd.12") {
			t.Errorf("stalled because %q", reason)
		}
		r.stop()
		_ = r.wait()
	})
}

func TestD2TheIDsOfTheOSDsOutliveTheirDeployments(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		for at := 1; len(s.deployments()) > 0; at++ {
			if life, _ := s.live(at); !life.dead {
				t.Fatal("it ended before its Deployments were gone")
			}
		}
		if _, ok := s.ceph.Snapshot().OSD(107); !ok {
			t.Fatal("the OSDs are gone already")
		}
		s.runToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestD1WhatNeedsCephStaysOpenForDaysAndIsFinishedWhenCephAnswers(t *testing.T) {
	for name, broken := range map[string]func(s *whole, down bool){
		"no tools pod": func(s *whole, down bool) { s.ceph.Outage(down) },
		"no quorum":    func(s *whole, down bool) { s.ceph.Hang(down) },
		"no mgr":       func(s *whole, down bool) { s.ceph.LoseMgr(down) },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				broken(s, true)
				s.ask(journal.ActionRequested{Manual: true})
				for range 3 {
					r := s.start(s.cfg())
					letPass(24*time.Hour - time.Minute)
					r.stop()
					_ = r.wait()
				}
				s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
				if hold, deferred := s.record().Deferred(); !deferred || hold.Preflight != actions.CephAnswers {
					t.Errorf("not deferred: %q", s.story())
				}
				broken(s, false)
				s.runToEnd(s.cfg())
				s.wantTraces()
				s.wantOthers()
			})
		})
	}
}

func TestAnAutomaticPurgeDoesNotBeginWhileCephDoesNotAnswer(t *testing.T) {
	for name, broken := range map[string]func(s *whole, down bool){
		"when it is planned": func(s *whole, down bool) { s.ceph.Outage(down) },
		"without a mgr":      func(s *whole, down bool) { s.ceph.LoseMgr(down) },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				broken(s, true)
				s.ask(journal.ActionRequested{})
				r := s.start(s.cfg())
				letPass(5 * time.Hour)
				s.wantAll()
				if len(s.record().Holds) != 1 {
					t.Errorf("no hold says why: %q", s.story())
				}
				broken(s, false)
				if err := r.wait(); err != nil {
					t.Fatal(err)
				}
				s.wantTraces()
			})
		})
	}
}

func TestD4ACephThatHangsKeepsNothingElseWaiting(t *testing.T) {
	for step, hang := range map[string]func(s *whole, hanging bool){
		"out-osds":    func(s *whole, hanging bool) { s.ceph.Hang(hanging) },
		"purge-osd 3": func(s *whole, hanging bool) { s.ceph.LoseMgr(hanging) },
	} {
		t.Run(step, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ask(journal.ActionRequested{Manual: true})
				s.ceph.AfterEffect = func(effect string) {
					if strings.HasPrefix(effect, "osd-out") {
						hang(s, true)
					}
				}
				r := s.start(s.cfg())
				letPass(5 * time.Second)
				s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
				letPass(24 * time.Hour)
				if hold, deferred := s.record().Deferred(); !deferred || hold.Step != step {
					t.Errorf("it does not just wait for Ceph: %+v, %q", hold, s.story())
				}
				r.stop()
				_ = r.wait()
				hang(s, false)
				s.runToEnd(s.cfg())
				s.wantTraces()
			})
		})
	}
}

// replaced lets another machine join under the node's name.
func (s *whole) replaced() {
	s.cluster.AddNode("w1", journal.RolePrimary)
	s.rook.ListNode("w1")
}

func TestAReplacementOfTheSameHostnameKeepsItsNewOSDs(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(24 * time.Hour)
		r.stop()
		_ = r.wait()
		// The new machine has a new disk, the id 50 and, by hand, the id 12 again.
		s.replaced()
		fresh := s.ceph.AddHost("w1", 50, 12, 60) // 60 has no Deployment yet
		s.rook.AddOSD(50, "w1")
		s.rook.AddOSD(12, "w1")
		s.ceph.LoseHost("w1") // all of them are about to start
		s.ceph.Outage(false)
		s.runToEnd(s.cfg())
		tree := s.ceph.Snapshot()
		for _, ref := range fresh {
			if osd, ok := tree.OSD(ref.ID); !ok || osd.UUID != ref.UUID || !osd.In() {
				t.Errorf("%+v of the replacement is %+v now; %q", ref, osd, s.story())
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
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.replaced()
		s.ceph.ReturnHost("w1")
		s.ceph.Outage(false)
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		for _, ref := range s.refs {
			if _, ok := s.ceph.Snapshot().OSD(ref.ID); !ok {
				t.Errorf("osd.%d was purged while it ran", ref.ID)
			}
		}
	})
}

func TestAnOSDThatStillRunsIsNotPurgedAndSaysSo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.ReturnHost("w1")
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		hold := s.record().Holds["purge-osd 3"]
		if hold.Preflight != actions.OSDsDown || !strings.Contains(hold.Reason, "osd.3, osd.12, osd.107 still runs") {
			t.Errorf("held by %+v", hold)
		}
		if _, deferred := s.record().Deferred(); deferred {
			t.Error("it counts as waiting for Ceph alone")
		}
		s.ceph.LoseHost("w1")
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		s.wantTraces()
	})
}

func TestOSDsRestBetweenOutAndPurgeAsConfiguredAlsoAcrossARestart(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.wait = 2 * time.Hour
		s.ask(journal.ActionRequested{})
		r := s.start(s.cfg())
		letPass(time.Hour)
		r.stop()
		_ = r.wait()
		r = s.start(s.cfg())
		letPass(time.Hour - time.Minute)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		letPass(2 * time.Minute)
		s.wantTraces()
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestListsThatAreNotEKCOsAreLeftAlone(t *testing.T) {
	for name, set := range map[string]func(s *whole){
		"the installer's list": func(s *whole) { s.userManaged = true },
		"useAllNodes":          func(s *whole) { s.rook.UseAllNodes(true) },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				set(s)
				s.ask(journal.ActionRequested{})
				s.runToEnd(s.cfg())
				s.wantTraces("storage entry")
				if s.facts().Storage.EntryKept == "" {
					t.Error("the plan does not say why")
				}
			})
		})
	}
}

func TestAClusterWithoutRookHasNoStepsForIt(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.SetInstallation(rook.Installation{})
		s.ask(journal.ActionRequested{})
		s.runToEnd(s.cfg())
		if s.facts().Storage != nil || s.ceph.Calls("Tree")+s.ceph.Calls("Health") != 0 {
			t.Errorf("captured %+v", s.facts().Storage)
		}
		if s.nodeExists() {
			t.Error("the node still exists")
		}
	})
}

func TestOneStepThatFailsDoesNotKeepTheOthersWaiting(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		s.rook.Forbid(writesOfRook...)
		r := s.start(s.cfg())
		letPass(5 * time.Second)
		if s.nodeExists() || len(s.etcd.List()) != 2 {
			t.Errorf("the Node or the etcd member waits for Rook: %q", s.story())
		}
		s.rook.Allow(writesOfRook...)
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		s.wantTraces()
	})
}

func TestALiveNodeIsUnlistedBeforeItsOSDsGoSoThatRookDoesNotMakeThemAnew(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.cluster.ReturnNode("w1")
		s.rook.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "remove-storage-node") {
				<-time.After(10 * time.Second)
			}
			if strings.HasPrefix(effect, "delete-deployment") && slices.Contains(s.rook.Nodes(), "w1") {
				t.Errorf("%s while the node is listed", effect)
			}
		}
		s.ask(journal.ActionRequested{Manual: true, Live: true})
		s.runToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestPurgingAgainChangesNothingMore(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{Manual: true})
		s.runToEnd(s.cfg())
		before := s.end()
		s.ask(journal.ActionRequested{Manual: true})
		s.runToEnd(s.cfg())
		if got := s.end(); got != before {
			t.Errorf("it went from %s to %s", before, got)
		}
	})
}

func TestADryRunOfAWholePurgeTouchesNothing(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{DryRun: true})
		s.runToEnd(s.cfg())
		s.wantAll()
		if len(s.ceph.Effects())+len(s.etcd.Effects())+len(s.cluster.Effects())+len(s.rook.Effects()) != 0 {
			t.Error("it had effects")
		}
	})
}

// outageBeforeOut makes Ceph unavailable from the removal of the Deployments on, so that
// the OSDs are captured and not marked out yet.
func (s *whole) outageBeforeOut() *running {
	s.rook.BeforeEffect = func(string) { s.ceph.Outage(true) }
	s.ask(journal.ActionRequested{Manual: true})
	r := s.start(s.cfg())
	letPass(time.Hour)
	return r
}

func TestAnIDThatCephGaveAgainIsNotTheLostOSD(t *testing.T) {
	for name, test := range map[string]struct {
		before func(s *whole)
		run    func(s *whole) *running
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
				if err := r.wait(); err != nil {
					t.Fatal(err)
				}
				if osd, ok := s.ceph.Snapshot().OSD(12); !ok || osd.UUID != fresh.UUID || !osd.In() {
					t.Errorf("the new osd.12 is %+v", osd)
				}
				s.wantTraces()
			})
		})
	}
}

func TestOSDsThatOnlyTheCrushTreeKnowsAreFoundWhenCephAnswers(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12, 107)
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.ceph.Outage(false)
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		s.wantTraces()
		s.wantOthers()
	})
}

func TestAnOSDUnderTheHostThatRookRunsElsewhereIsNotFoundLater(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12)
		s.rook.AddOSD(12, "p2")
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.ceph.Outage(false)
		letPass(time.Hour)
		if osd, ok := s.ceph.Snapshot().OSD(12); !ok || !osd.In() {
			t.Errorf("an OSD of another node is %+v", osd)
		}
		r.stop()
		_ = r.wait()
	})
}

func TestOSDsAreMarkedOutAgainWhenCephBrokeOffInBetween(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-down") && s.ceph.Count(effect) == 1 {
				s.ceph.Outage(true)
			}
			if strings.HasPrefix(effect, "osd-purge") && s.ceph.Count("osd-out 3,12,107") == 0 {
				t.Errorf("%s before the OSDs were out", effect)
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.ceph.Outage(false)
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		s.wantTraces()
	})
}

func TestAPersonDoesNotWaitForACephThatHangsMoreThanOnce(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Hang(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(25 * time.Second)
		if s.nodeExists() {
			t.Errorf("the Node still exists: %q", s.story())
		}
		r.stop()
		_ = r.wait()
	})
}

func TestTheEntryOfAReplacementStaysListed(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.Forbid(writesOfRook...)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(10 * time.Second)
		s.cluster.RemoveNode("w1")
		s.cluster.AddNode("w1", journal.RolePrimary)
		s.rook.Allow(writesOfRook...)
		if err := r.wait(); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(s.rook.Nodes(), "w1") {
			t.Error("the replacement is not listed any more")
		}
	})
}

func TestNothingUnderTheNameIsTheLostNodesOnceItWasReplacedBeforeThePlan(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.cluster.ReplaceNode("w1")
		before := s.state()
		s.ask(journal.ActionRequested{Manual: true})
		s.runToEnd(s.cfg())
		if got := s.state(); got != before || !s.nodeExists() {
			t.Errorf("it went from %s to %s", before, got)
		}
	})
}
