package purge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
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
		plan, checks, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
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
		s.RunToEnd(s.cfg())
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
		s.ceph.BeforeEffect = func(effect string) {
			if left := s.deployments(); len(left) > 0 {
				t.Errorf("%s while there are still %q", effect, left)
			}
		}
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		s.wantOthers()
		for _, id := range []int{3, 12, 107} {
			if got := s.ceph.Count(fmt.Sprintf("osd-purge %d", id)); got != 1 {
				t.Errorf("osd.%d was purged %d times", id, got)
			}
			if got := s.rook.Count(fmt.Sprintf("scale-down rook-ceph-osd-%d", id)); got != 1 {
				t.Errorf("the Deployment of osd.%d was scaled down %d times", id, got)
			}
		}
	})
}

func TestQ28OSDsWhoseDeploymentsAreGoneAreFoundInTheCrushTree(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(3, 12, 107)
		s.ceph.RemoveOSD(12) // by hand, as people do: the CRUSH map keeps it
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		s.wantOthers()
	})
}

func TestAnOSDThatRookRunsElsewhereIsNotTheNodesThoughItsCrushHostSaysSo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12)
		s.rook.AddOSD(12, "p2")
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		if _, ok := s.ceph.Snapshot().OSD(12); !ok || s.ceph.Count("osd-purge 12") != 0 {
			t.Error("an OSD of another node was purged")
		}
		if got := s.LastLine(); !strings.Contains(got, "CRUSH host w1 is left alone: it still holds osd.12") {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestD2TheIDsOfTheOSDsOutliveTheirDeployments(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		for at := 1; len(s.deployments()) > 0; at++ {
			if life, _ := s.live(at); life.Where() == "" {
				t.Fatal("it ended before its Deployments were gone")
			}
		}
		if _, ok := s.ceph.Snapshot().OSD(107); !ok {
			t.Fatal("the OSDs are gone already")
		}
		s.RunToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestAnOSDThatStillRunsIsNotPurgedAndSaysSo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.ReturnHost("w1")
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		hold := s.Record().Holds["out-osds"]
		if s.ceph.Count("osd-down 3,12,107") != 0 || s.ceph.Count("osd-out 3,12,107") != 0 {
			t.Error("OSDs that run were marked down and out")
		}
		if hold.Preflight != purge.OSDsDown || !strings.Contains(hold.Reason, "osd.3, osd.12, osd.107 still runs") {
			t.Errorf("held by %+v", hold)
		}
		if _, deferred := s.Record().Deferred(); deferred {
			t.Error("it counts as waiting for Ceph alone")
		}
		s.ceph.LoseHost("w1")
		r.End()
		s.wantTraces()
	})
}

func TestAnAutomaticPurgeOfANodeWhoseOSDsRunDestroysNothing(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.ReturnHost("w1")
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(5 * time.Hour)
		s.wantAll()
		if hold := s.Record().Holds["check"]; hold.Preflight != purge.OSDsDown {
			t.Errorf("held by %+v", hold)
		}
		s.ceph.LoseHost("w1")
		r.End()
		s.wantTraces()
	})
}

func TestAPersonIsToldThatOSDsOfALostNodeRunBeforeAnythingIsGone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.ReturnHost("w1")
		s.ask(journal.ActionRequested{Manual: true})
		_, checks, err := actions.NewRunner(s.cfg()).Explain(t.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if check.Preflight == purge.OSDsDown && check.Verdict.Kind != actions.VerdictWarn {
				t.Errorf("a person is told %+v", check.Verdict)
			}
		}
	})
}

func TestAnOSDUnderTheHostThatRunsWithoutADeploymentIsNotTheLostNodes(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.ReturnHost("w1")
		s.removeOSDs(12)
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		s.ceph.LoseHost("w1")
		s.Pass(time.Hour)
		r.Halt()
		if osd, ok := s.ceph.Snapshot().OSD(12); !ok || !osd.In() {
			t.Errorf("osd.12, which ran when the purge was planned, is %+v; %q", osd, s.Story())
		}
	})
}

func TestAPauseHoldsAnAutomaticPurgeBeforeItMovesDataAndBeforeTheCrushHost(t *testing.T) {
	for step, begins := range map[string]string{"out-osds": "delete-deployment", "remove-crush-host": "osd-purge"} {
		t.Run(step, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				cfg, paused := s.cfg(), actionstest.NewPreflight(actions.Pass())
				cfg.Preflights["Paused"] = paused
				pause := func(effect string) {
					if strings.HasPrefix(effect, begins) {
						paused.SetVerdict(actions.Hold("paused"))
					}
				}
				s.ceph.AfterEffect, s.rook.AfterEffect = pause, pause
				s.ask(journal.ActionRequested{})
				r := s.Start(cfg)
				s.Pass(time.Hour)
				if hold := s.Record().Holds[step]; hold.Preflight != "Paused" {
					t.Errorf("not held: %q", s.Story())
				}
				paused.SetVerdict(actions.Pass())
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestOSDsRestBetweenOutAndPurgeAsConfiguredAlsoAcrossARestart(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.wait = 2 * time.Hour
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		r.Halt()
		r = s.Start(s.cfg())
		s.Pass(time.Hour - time.Minute)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		s.Pass(2 * time.Minute)
		s.wantTraces()
		r.End()
	})
}

func TestOSDsRestAfterTheyAreOutHoweverLongAgoTheirPurgeWasAskedFor(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.wait = 2 * time.Hour
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(5 * time.Hour)
		s.ceph.Outage(false)
		s.Pass(2*time.Hour - time.Minute)
		if s.ceph.Count("osd-out 3,12,107") != 1 {
			t.Errorf("the OSDs are not out: %q", s.Story())
		}
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		s.Pass(2 * time.Minute)
		s.wantTraces()
		r.End()
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
				s.RunToEnd(s.cfg())
				s.wantTraces("storage entry")
				if s.facts().Storage.EntryKept == "" {
					t.Error("the plan does not say why")
				}
			})
		})
	}
}

func TestTheEntryThatWasRemovedIsOnRecord(t *testing.T) {
	short, long := anEntry, `{"name":"w1","devices":"`+strings.Repeat("x", 5000)+`"}`
	for name, test := range map[string]struct{ entry, want string }{
		"short": {short, `{"removed":` + short + `}`},
		"long":  {long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.rook.EditNode("w1", test.entry)
				s.ask(journal.ActionRequested{})
				s.RunToEnd(s.cfg())
				s.wantTraces()
				if got := s.outputs("remove-storage-entry"); got != test.want {
					t.Errorf("on record is %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestAClusterWithoutRookHasNoStepsForIt(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.SetInstallation(rook.Installation{})
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		if s.facts().Storage != nil || s.ceph.Calls("Tree")+s.ceph.Calls("Health") != 0 {
			t.Errorf("captured %+v", s.facts().Storage)
		}
		if s.NodeExists() {
			t.Error("the node still exists")
		}
	})
}

func TestOneStepThatFailsDoesNotKeepTheOthersWaiting(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		s.rook.Forbid(writesOfRook...)
		r := s.Start(s.cfg())
		s.Pass(5 * time.Second)
		if s.NodeExists() || len(s.etcd.List()) != 2 {
			t.Errorf("the Node or the etcd member waits for Rook: %q", s.Story())
		}
		s.rook.Allow(writesOfRook...)
		r.End()
		s.wantTraces()
	})
}

func TestALiveNodeIsUnlistedBeforeItsOSDsGoSoThatRookDoesNotMakeThemAnew(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.ReturnNode("w1")
		s.rook.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "remove-storage-node") {
				<-time.After(10 * time.Second)
			}
			if strings.HasPrefix(effect, "delete-deployment") && slices.Contains(s.rook.Nodes(), "w1") {
				t.Errorf("%s while the node is listed", effect)
			}
		}
		s.ask(journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
		s.RunToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestPurgingAgainChangesNothingMore(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{Manual: true})
		s.RunToEnd(s.cfg())
		before := s.outcome() + s.LastLine()
		s.ask(journal.ActionRequested{Manual: true})
		s.RunToEnd(s.cfg())
		if got := s.outcome() + s.LastLine(); got != before {
			t.Errorf("it went from %s to %s", before, got)
		}
	})
}

func TestADryRunOfAWholePurgeTouchesNothing(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{DryRun: true})
		s.RunToEnd(s.cfg())
		s.wantAll()
		if len(s.ceph.Effects())+len(s.etcd.Effects())+len(s.Cluster.Effects())+len(s.rook.Effects()) != 0 {
			t.Error("it had effects")
		}
	})
}
