package purge_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
)

// runs makes w1 a node that is well, with a kubelet that ends the OSDs' pods some
// time after their Deployments; never, if that time is zero. Rook makes Deployments
// again as long as it uses the node.
func (s *whole) runs(stops time.Duration) {
	s.answers()
	for _, ref := range s.refs {
		s.rook.AddOSDPod(ref.ID, "w1")
	}
	s.rook.AfterEffect = func(effect string) {
		var id int
		if _, err := fmt.Sscanf(effect, "delete-deployment rook-ceph-osd-%d", &id); err == nil && stops > 0 {
			time.AfterFunc(stops, func() { s.stopped(id) })
		}
		time.AfterFunc(s.reconcile, s.reconciled)
	}
}

// stopped ends the pod of an OSD, unless its Deployment is there again.
func (s *whole) stopped(id int) {
	if !slices.Contains(s.deployments(), fmt.Sprintf("rook-ceph-osd-%d", id)) {
		s.ceph.StopOSD(id)
		s.rook.RemoveOSDPod(id)
	}
}

// reconciled is what Rook does for a node that it uses.
func (s *whole) reconciled() {
	node, err := s.rook.StorageNode(s.T.Context(), "w1")
	if err != nil || (node.Name == "" && !node.UseAllNodes) || !s.NodeExists() {
		return
	}
	for _, ref := range s.refs {
		if !slices.Contains(s.deployments(), fmt.Sprintf("rook-ceph-osd-%d", ref.ID)) {
			s.rook.AddOSDOf(ref, "w1")
			s.rook.AddOSDPod(ref.ID, "w1")
			s.ceph.StartOSD(ref.ID)
		}
	}
}

// wantRunning checks that everything of w1 is as it was before its purge.
func (s *whole) wantRunning() {
	s.T.Helper()
	s.wantAll()
	for _, ref := range s.refs {
		if osd, _ := s.ceph.Snapshot().OSD(ref.ID); !osd.Up || osd.Reweight != 1 {
			s.T.Errorf("osd.%d is %+v", ref.ID, osd)
		}
	}
}

const anEntry = `{"name":"w1","devices":[{"name":"sdb"}]}`

func TestPurgingALiveNodeDestroysNothingBeforeItsOSDsAreSeenStopped(t *testing.T) {
	for name, seems := range map[string]func(s *whole, id int){
		"by Ceph and by its pod": func(*whole, int) {},
		"by its pod alone":       func(s *whole, id int) { s.ceph.StopOSD(id) },
		"by Ceph alone":          func(s *whole, id int) { s.rook.RemoveOSDPod(id) },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.runs(0)
				for _, ref := range s.refs {
					seems(s, ref.ID)
				}
				s.ask(live)
				r := s.Start(s.cfg())
				s.Pass(20 * time.Minute)
				if !s.NodeExists() || len(s.etcd.List()) != 3 || s.Record().PastNoReturn {
					t.Fatalf("an OSD still runs, and left of the node are %q; %q", s.traces(), s.Story())
				}
				for _, ref := range s.refs {
					s.stopped(ref.ID)
				}
				r.End()
				s.wantTraces()
				s.wantOthers()
			})
		})
	}
}

func TestALiveNodeIsPurgedInTheDocumentedOrder(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.runs(5 * time.Second)
		var mu sync.Mutex // what does not depend on one another is done side by side
		var effects []string
		note := func(effect string) {
			mu.Lock()
			defer mu.Unlock()
			if verb, _, _ := strings.Cut(effect, " "); !slices.Contains(effects, verb) {
				effects = append(effects, verb)
			}
		}
		s.ceph.BeforeEffect, s.rook.BeforeEffect, s.etcd.BeforeEffect, s.Cluster.BeforeEffect = note, note, note, note
		s.ask(live)
		s.Start(s.cfg()).End()
		s.wantTraces()
		want := []string{"remove-storage-node", "osd-out", "delete-deployment"}
		if len(effects) < len(want) || !slices.Equal(effects[:len(want)], want) {
			t.Errorf("it went %q, want first %q", effects, want)
		}
		if slices.Contains(effects, "osd-down") {
			t.Error("OSDs that run were marked down, which makes them mark themselves up again")
		}
	})
}

func TestACancelBeforeTheStopRestoresTheEntryAndMarksTheOSDsIn(t *testing.T) {
	for name, after := range map[string]string{
		"after the entry": "remove-storage-node", "after out": "osd-out", "after the Deployments": "delete-deployment",
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.rook.EditNode("w1", anEntry)
				s.reconcile = 20 * time.Second
				s.runs(5 * time.Second)
				var once sync.Once
				reacts, r := s.rook.AfterEffect, s.Ready()
				cancel := func(effect string) {
					if strings.HasPrefix(effect, after) {
						once.Do(func() { s.Cancel(r) })
					}
				}
				s.ceph.AfterEffect = cancel
				s.rook.AfterEffect = func(effect string) { reacts(effect); cancel(effect) }
				s.ask(live)
				r.Begin(s.cfg(), s.Record())
				r.End()
				if s.LastLine() != "ended cancelled changed my mind" {
					t.Errorf("it ended: %s", s.LastLine())
				}
				s.Pass(time.Minute) // for Rook
				s.wantRunning()
				if got := s.rook.Entry("w1"); got != anEntry {
					t.Errorf("the entry is %s", got)
				}
			})
		})
	}
}

func TestAPersonIsNotToldThatALiveNodeIsNotQuiteDead(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.runs(0)
		s.ask(live)
		_, checks, err := actions.NewRunner(s.cfg()).Explain(t.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if check.Preflight == purge.OSDsDown && check.Verdict.Kind != actions.VerdictPass {
				t.Errorf("a person is told %+v", check.Verdict)
			}
		}
	})
}

func TestACancelWhileAnOSDDoesNotStopRestoresTheNode(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = 20 * time.Second
		s.runs(0)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(10 * time.Minute)
		s.Cancel(r)
		r.End()
		s.Pass(time.Minute)
		s.wantRunning()
	})
}

func TestALiveNodeThatRookUsesWithoutAListIsPurgedToo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.UseAllNodes(true)
		s.reconcile = 30 * time.Second
		s.runs(5 * time.Second)
		s.ask(live)
		s.Start(s.cfg()).End()
		s.wantTraces("storage entry")
	})
}

func TestANodeThatIsLostDuringItsPurgeIsPurgedAllTheSame(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.runs(0)
		s.rook.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "remove-storage-node") {
				s.lose()
			}
		}
		s.ask(live)
		s.Start(s.cfg()).End()
		s.wantTraces()
	})
}

func TestWhatWasOutBeforeStaysOutAndWeightsAreKeptAfterACancel(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = 20 * time.Second
		s.runs(0)
		if err := s.ceph.Out(t.Context(), 12); err != nil {
			t.Fatal(err)
		}
		if err := s.ceph.Reweight(t.Context(), 107, 0.8); err != nil {
			t.Fatal(err)
		}
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(10 * time.Minute)
		s.Cancel(r)
		r.End()
		for id, want := range map[int]float64{3: 1, 12: 0, 107: 0.8} {
			if osd, _ := s.ceph.Snapshot().OSD(id); osd.Reweight != want {
				t.Errorf("osd.%d has weight %v, want %v", id, osd.Reweight, want)
			}
		}
	})
}

func TestACancelPutsNoEntryThereThatIsNotTheNodes(t *testing.T) {
	for name, test := range map[string]struct {
		during func(s *whole)
		listed bool
		says   string
	}{
		"another Node has the name": {func(s *whole) { s.Cluster.ReplaceNode("w1") }, false, "has the hostname w1 now"},
		"another CephCluster":       {func(s *whole) { s.rook.ReplaceCluster("uid-other") }, false, "the CephCluster was replaced"},
		"all nodes are used now":    {func(s *whole) { s.rook.UseAllNodes(true) }, false, "useAllNodes is set"},
		"somebody put it back":      {func(s *whole) { s.rook.ListNode("w1") }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.reconcile = time.Hour
				s.runs(0)
				s.ask(live)
				r := s.Start(s.cfg())
				s.Pass(time.Minute)
				test.during(s)
				s.Cancel(r)
				r.End()
				if listed := slices.Contains(s.rook.Nodes(), "w1"); listed != test.listed || s.rook.Count("add-storage-node w1") != 0 {
					t.Errorf("it is listed: %v", listed)
				}
				if last := s.LastLine(); !strings.Contains(last, test.says) {
					t.Errorf("it ended %q, which does not say %q", last, test.says)
				}
			})
		})
	}
}

func TestACancelWaitsForCephToMarkTheOSDsInAgain(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = 20 * time.Second
		s.runs(0)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		s.ceph.Outage(true)
		s.Cancel(r)
		s.Pass(24 * time.Hour)
		if hold := s.Record().Holds["in-osds"]; hold.Preflight != purge.CephAnswers {
			t.Errorf("held by %+v; %q", s.Record().Holds, s.Story())
		}
		s.ceph.Outage(false)
		r.End()
		s.Pass(time.Minute)
		s.wantRunning()
	})
}

func TestALiveNodeKeepsEverythingWhileCephDoesNotAnswer(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = 20 * time.Second
		s.runs(5 * time.Second)
		s.ceph.Outage(true)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(24 * time.Hour)
		if !s.NodeExists() || len(s.deployments()) != 3 || s.Record().PastNoReturn {
			t.Errorf("left of the node are %q; %q", s.traces(), s.Story())
		}
		s.ceph.Outage(false)
		r.End()
		s.wantTraces()
	})
}

func TestALiveNodeOfWhichRookMayNotBeReadIsPurgedOnceItMay(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = 20 * time.Second
		s.runs(5 * time.Second)
		s.rook.Forbid(readsOfRook...)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantAllAllowed()
		s.rook.Allow(readsOfRook...)
		r.End()
		s.wantTraces()
	})
}

// wantAllAllowed is wantAll for when Rook may not be read.
func (s *whole) wantAllAllowed() {
	s.T.Helper()
	s.rook.Allow(readsOfRook...)
	s.wantAll()
	s.rook.Forbid(readsOfRook...)
}

// runsAgain runs a purge whose OSDs had stopped when policy held it, and run again
// when policy lets go.
func (s *whole) runsAgain() *actionstest.Running {
	s.rook.UseAllNodes(true)
	s.reconcile = 10 * time.Minute
	s.runs(5 * time.Second)
	turn := actionstest.NewPreflight(actions.Pass())
	time.AfterFunc(4*time.Second, func() { turn.SetVerdict(actions.Hold("another purge comes first")) })
	cfg := s.cfg()
	cfg.Preflights["OneAtATime"] = turn
	s.ask(live)
	r := s.Start(cfg)
	s.Pass(time.Hour)
	if s.Count("done stop-osds") != 1 {
		s.T.Fatalf("the OSDs did not stop: %q", s.Story())
	}
	turn.SetVerdict(actions.Pass())
	s.Pass(time.Hour)
	if !s.NodeExists() {
		s.T.Fatalf("its OSDs run, and the node is gone: %q", s.Story())
	}
	return r
}

func TestALiveNodeWhoseOSDsRunAgainAfterTheyWereStoppedKeepsEverything(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.runsAgain()
		s.wantAll()
		if hold := s.Record().Holds["delete-node"]; s.Record().PastNoReturn || hold.Preflight != purge.OSDsDown || !strings.Contains(hold.Reason, "ekco cancel") {
			t.Errorf("held by %+v; %q", s.Record().Holds, s.Story())
		}
		s.Cancel(r)
		r.End()
		s.wantRunning()
	})
}

func TestALiveNodeWhoseOSDsRanAgainGoesWhenTheyHaveStopped(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.runsAgain()
		s.lose()
		r.End()
		s.wantTraces("storage entry")
	})
}

func TestALiveNodeWithoutOSDsButAnEntryIsUnlistedFirst(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.answers()
		s.removeOSDs(3, 12, 107)
		for _, ref := range s.refs {
			s.ceph.StopOSD(ref.ID)
			if err := s.ceph.Purge(t.Context(), ref, false); err != nil {
				t.Fatal(err)
			}
		}
		s.rook.Forbid(rooksim.PatchCephClusters)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		if !s.NodeExists() || s.ceph.Count("crush-rm w1") != 0 {
			t.Errorf("it is listed, and left of the node are %q", s.traces())
		}
		s.rook.Allow(rooksim.PatchCephClusters)
		r.End()
		s.wantTraces()
	})
}

func TestACancelLeavesNoDeploymentScaledDownThatCouldNotBeDeleted(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.UseAllNodes(true)
		s.runs(5 * time.Second)
		s.rook.Forbid(rooksim.DeleteDeployments)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.Cancel(r)
		r.End()
		s.wantRunning()
		for _, d := range s.rook.Deployments() {
			if d.Replicas != 1 {
				t.Errorf("Deployment %s is left with %d replicas", d.Name, d.Replicas)
			}
		}
	})
}

func TestALiveNodeKeepsItselfWhilePlacementGroupsLackItsOSDsHoweverSoonTheyStopped(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AddPool("replicapool", 3, 3)
		s.reconcile = 20 * time.Second
		s.runs(time.Second)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(20 * time.Second)
		if s.Count("done stop-osds") != 1 || !s.NodeExists() || s.Record().PastNoReturn {
			t.Fatalf("a placement group is not active since the OSDs stopped, and left of the node are %q; %q", s.traces(), s.Story())
		}
		s.Cancel(r)
		r.End()
		s.Pass(time.Minute)
		s.wantRunning()
	})
}

func TestACancelPutsNoEntryBackThatSomebodyElseTookAway(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = time.Hour
		s.runs(0)
		cfg := s.cfg()
		turn := actionstest.NewPreflight(actions.Hold("another purge comes first"))
		cfg.Preflights["OneAtATime"] = turn
		s.ask(live)
		r := s.Start(cfg)
		s.Pass(time.Minute)
		entry, err := s.rook.StorageNode(t.Context(), "w1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.rook.RemoveStorageNode(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
		turn.SetVerdict(actions.Pass())
		s.Pass(time.Hour)
		s.Cancel(r)
		r.End()
		if slices.Contains(s.rook.Nodes(), "w1") || !strings.Contains(s.LastLine(), "it was gone before the purge") {
			t.Errorf("w1 is listed again, which somebody else had taken off the list: %q", s.Story())
		}
	})
}

func TestALiveNodeIsNotDestroyedAsLongAsAnOSDRunsWhoseDeploymentAndPodAreGone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.answers()
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(20 * time.Minute)
		if !s.NodeExists() || len(s.etcd.List()) != 3 || s.Record().PastNoReturn {
			t.Errorf("an OSD still runs, and left of the node are %q; %q", s.traces(), s.Story())
		}
		for _, ref := range s.refs {
			s.ceph.StopOSD(ref.ID)
		}
		r.End()
		s.wantTraces()
	})
}

func TestADeploymentThatRookMakesAgainBeforeItsOSDStoppedIsRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.runs(5 * time.Second)
		var once sync.Once
		reacts, again := s.rook.AfterEffect, s.refs[0]
		s.rook.AfterEffect = func(effect string) {
			reacts(effect)
			if effect == fmt.Sprintf("delete-deployment rook-ceph-osd-%d", again.ID) {
				once.Do(func() { time.AfterFunc(2*time.Second, func() { s.rook.AddOSDOf(again, "w1") }) })
			}
		}
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces()
		r.Halt()
	})
}

// An OSD that Ceph calls down comes up again as long as its pod is there.
func TestALiveNodeIsNotDestroyedAsLongAsAPodOfItsOSDsHasNotEnded(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.runs(0)
		s.rook.AddOSDPod(50, "w1") // another's, which holds nothing up
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		for _, ref := range s.refs {
			s.ceph.StopOSD(ref.ID)
		}
		s.Pass(20 * time.Minute)
		if !s.NodeExists() || s.Record().PastNoReturn {
			t.Errorf("pods of OSDs are there, and left of the node are %q; %q", s.traces(), s.Story())
		}
		for _, ref := range s.refs {
			s.rook.RemoveOSDPod(ref.ID)
		}
		r.End()
		s.wantTraces()
	})
}

func TestALiveNodeIsNotDestroyedAsLongAsADeploymentOfItsOSDsIsThereAgain(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.runs(0)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(time.Minute)
		s.rook.Forbid(writesOfRook...)
		s.rook.AddOSDOf(s.refs[0], "w1")
		for _, ref := range s.refs {
			s.ceph.StopOSD(ref.ID)
			s.rook.RemoveOSDPod(ref.ID)
		}
		s.Pass(20 * time.Minute)
		if !s.NodeExists() || s.Record().PastNoReturn {
			t.Errorf("a Deployment is there again, and left of the node are %q; %q", s.traces(), s.Story())
		}
		s.rook.Allow(writesOfRook...)
		s.Retry(r)
		r.End()
		s.wantTraces()
	})
}

func TestACancelDoesNotMarkInAnOSDThatCephGaveTheIDSince(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = time.Hour
		s.runs(0)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(10 * time.Minute)
		fresh := s.ceph.AddHost("p2", 12)[0]
		if err := s.ceph.Out(t.Context(), 12); err != nil {
			t.Fatal(err)
		}
		s.Cancel(r)
		r.End()
		if osd, ok := s.ceph.Snapshot().OSD(12); !ok || osd.UUID != fresh.UUID || osd.In() {
			t.Errorf("osd.12, which another marked out, is %+v; %q", osd, s.Story())
		}
	})
}

// beforeTheEntry runs the purge of a live node until it waits for Ceph, before
// anything is done.
func (s *whole) beforeTheEntry() *actionstest.Running {
	s.rook.EditNode("w1", anEntry)
	s.reconcile = time.Hour
	s.runs(0)
	s.ceph.Outage(true)
	s.ask(live)
	r := s.Start(s.cfg())
	s.Pass(time.Hour)
	return r
}

func TestACancelRestoresTheEntryAsItWasRemovedNotAsItWasCaptured(t *testing.T) {
	const edited = `{"name":"w1","devices":[{"name":"sdc"}]}`
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.beforeTheEntry()
		s.rook.EditNode("w1", edited)
		s.ceph.Outage(false)
		s.Pass(time.Hour)
		s.Cancel(r)
		r.End()
		if got := s.rook.Entry("w1"); got != edited {
			t.Errorf("the entry is %s, want %s; %q", got, edited, s.Story())
		}
	})
}

func TestACancelRestoresNoEntryThatThePurgeDidNotRemove(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.beforeTheEntry()
		s.rook.UseAllNodes(true)
		s.ceph.Outage(false)
		s.Pass(time.Hour)
		s.rook.UseAllNodes(false)
		node, err := s.rook.StorageNode(t.Context(), "w1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.rook.RemoveStorageNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		s.Cancel(r)
		r.End()
		if slices.Contains(s.rook.Nodes(), "w1") {
			t.Errorf("what a person took off the list is on it again; %q", s.Story())
		}
	})
}

func TestACancelEndsWhenCephIsGoneForGood(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.reconcile = time.Hour
		s.runs(0)
		s.ask(live)
		r := s.Start(s.cfg())
		s.Pass(10 * time.Minute)
		s.ceph.Outage(true)
		s.Cancel(r)
		s.Pass(time.Hour)
		s.rook.SetInstallation(rook.Installation{Gone: true})
		r.End()
	})
}
