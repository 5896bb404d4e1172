package ring

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/sim/tempdir"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	goleak.VerifyTestMain(m)
}

// loseWorker takes worker-2 away with two pods that never end.
func (w *world) loseWorker() {
	w.cluster.LoseNode("worker-2")
	w.cluster.TerminatePods("worker-2", time.Now().Add(5*time.Minute))
}

func (w *world) addPods() {
	w.cluster.AddPod("default", "web-0", "worker-2")
	w.cluster.AddPod("default", "web-1", "worker-2")
	w.cluster.AddPod("default", "kept", "worker-1")
}

func TestTheLifeOfALostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.addPods()
		in := w.start(nil)
		pass(time.Minute)
		lost := time.Now()
		w.loseWorker()

		pass(time.Second)
		if got := w.machine("worker-2").State; got != fsmnode.Unknown {
			t.Errorf("after a second the node is %s, want Unknown", got)
		}
		// 5 min of deletion timestamp and 30 s more.
		pass(5*time.Minute + 28*time.Second)
		if n := w.cluster.Count("delete-pod default/web-0"); n != 0 {
			t.Fatal("a pod was deleted before its time")
		}
		pass(2 * time.Second)
		for _, pod := range []string{"web-0", "web-1"} {
			if n := w.cluster.Count("delete-pod default/" + pod); n != 1 {
				t.Errorf("%s: deleted %d times at %s, want once", pod, n, time.Since(lost))
			}
		}
		if got := w.machine("worker-2").State; got != fsmnode.Cleared {
			t.Errorf("the node is %s, want Cleared", got)
		}
		pass(time.Hour)
		if n := w.cluster.Count("delete-node worker-2"); n != 1 {
			t.Errorf("the Node was deleted %d times, want once", n)
		}
		if got := w.machine("worker-2").State; got != fsmnode.Purged {
			t.Errorf("the node is %s, want Purged", got)
		}
		if n := w.cluster.Count("delete-pod default/kept"); n != 0 {
			t.Error("a pod of a healthy node was deleted")
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		checkIntentBeforeEffect(t, w)
	})
}

func TestAnOrderlyStopLeavesASnapshotAndItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.start(nil)
		pass(time.Minute)
		if err := in.stop(); err != nil {
			t.Fatal(err)
		}
		snapshot, err := w.store.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		events := w.events(journal.Query{})
		last := events[len(events)-1]
		if last.Type != journal.TypeOperatorStopped || snapshot.Seq != last.Seq {
			t.Errorf("the journal ends with %s (%d), snapshot at %d", last.Type, last.Seq, snapshot.Seq)
		}
	})
}

func TestASnapshotThatDoesNotDecodeIsReplacedByAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(10 * time.Minute)
		if err := in.stop(); err != nil {
			t.Fatal(err)
		}
		want := w.machine("worker-2").State
		for _, broken := range []string{"{", `{"state":{"seq":"seven"}}`, `{"state":{"seq":1}}`} {
			snapshot, err := w.store.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			snapshot.State = []byte(broken)
			if err := w.store.SaveSnapshot(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			for _, says := range []bool{true, false} {
				in := w.start(nil)
				pass(time.Second)
				status, err := in.Backend(nil).Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if said := strings.Contains(strings.Join(status.Absent, "\n"), "snapshot"); said != says {
					t.Errorf("%s: the limitations are %q, want one about the snapshot: %t", broken, status.Absent, says)
				}
				if got := w.machine("worker-2").State; got != want || got == fsmnode.Healthy {
					t.Errorf("%s: the node is %s, want %s", broken, got, want)
				}
				in.life.kill() // it saves no snapshot at its end
				t.Logf("it ended: %v", <-in.ended)
			}
		}
	})
}

func TestAJournalOfAnotherClusterEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.store.BindCluster(t.Context(), "uid-of-elsewhere"); err != nil {
			t.Fatal(err)
		}
		before := len(w.events(journal.Query{}))
		in := w.start(nil)
		err := <-in.ended
		other, ok := errors.AsType[*journal.OtherClusterError](err)
		if !ok || other.Bound != "uid-of-elsewhere" || other.Asked == "" {
			t.Fatalf("EKCO ran on the journal of another cluster: %v", err)
		}
		if got := w.events(journal.Query{}); len(got) != before {
			t.Errorf("EKCO wrote into the journal of another cluster: %s", got[before].Type)
		}
	})
}

func TestNothingIsDecidedWhileTheAPIIsNotThereAtTheStart(t *testing.T) {
	for _, returns := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.addPods()
			// The journal knows a node that is lost, and of whose pods the time is
			// up soon; then nobody looks for an hour.
			in := w.start(nil)
			pass(time.Minute)
			w.loseWorker()
			pass(time.Minute)
			if err := in.stop(); err != nil {
				t.Fatal(err)
			}
			w.policy.PurgeDeadNodes, w.policy.PurgeAfter = true, 30*time.Minute
			w.cluster.Outage(true)
			before, effects := w.state().Seq, len(w.cluster.Effects())
			in = w.start(nil)
			pass(time.Hour)
			if reasons := in.Unready(t.Context()); len(reasons) == 0 {
				t.Error("EKCO calls itself ready without an API")
			}
			if events := w.events(journal.Query{After: before}); len(events) != 0 || len(w.cluster.Effects()) != effects {
				t.Errorf("without an API EKCO wrote %+v and did %+v", events, w.cluster.Effects()[effects:])
			}

			if returns {
				w.cluster.ReturnNode("worker-2")
			}
			w.cluster.Outage(false)
			pass(w.policy.Settling + time.Minute)
			if reasons := in.Unready(t.Context()); len(reasons) != 0 {
				t.Errorf("with the API back EKCO is not ready: %v", reasons)
			}
			requested := w.events(journal.Query{After: before, Types: []journal.Type{journal.TypeActionRequested}})
			if returns && len(requested) != 0 {
				t.Errorf("for a node that had come back meanwhile, EKCO decided %+v", requested)
			}
			if !returns && len(requested) == 0 {
				t.Error("for a node that is still lost, EKCO decided nothing")
			}
			if err := in.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNothingIsDecidedBeforeTheObserversHaveSynced: the node that the journal has
// as lost for hours is back, and the list that says so takes its time.
func TestNothingIsDecidedBeforeTheObserversHaveSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.addPods()
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(time.Minute)
		if err := in.stop(); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Hour)
		w.cluster.ReturnNode("worker-2")
		last := w.state().Seq
		w.unlisted = make(chan struct{})
		w.policy.Settling = time.Hour // a decision shows as what it refuses
		in = w.start(nil)
		pass(10 * time.Minute)
		for _, event := range w.events(journal.Query{After: last}) {
			if event.Type != journal.TypeOperatorStarted {
				t.Errorf("%s was decided by what an earlier EKCO saw", event.Type)
			}
		}
		if reasons := in.Unready(t.Context()); len(reasons) == 0 {
			t.Error("EKCO calls itself ready")
		}
		close(w.unlisted)
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Healthy {
			t.Errorf("the node is %s, want Healthy", got)
		}
		if asked := w.events(journal.Query{Types: []journal.Type{journal.TypeActionRequested}}); len(asked) != 0 {
			t.Errorf("%s was asked for", asked[0].Action)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestCrashMatrix kills EKCO before and after each append and each effect of a
// node's whole life, starts it again, and expects the same end.
func TestCrashMatrix(t *testing.T) {
	var did map[string]int
	synctest.Test(t, func(t *testing.T) {
		in := lifeOfANode(t, newWorld(t), nil)
		did = map[string]int{dyingAppends: in.store.appends, dyingEffects: in.kube.effects}
	})
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(fate.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lifeOfANode(t, newWorld(t), func(in *incarnation) { fate.arm(nil, in) })
			})
		})
	}
}

// lifeOfANode plays a node's loss, clearing and purge; the first incarnation
// may die, and is followed by a second. It returns the first.
func lifeOfANode(t *testing.T, w *world, arm func(*incarnation)) *incarnation {
	t.Helper()
	w.policy.PurgeDeadNodes = true
	w.addPods()
	first := w.start(arm)
	pass(time.Minute)
	w.loseWorker()
	pass(10 * time.Minute)
	last := first
	if first.life.check() != nil {
		t.Logf("the first one ended: %v", <-first.ended)
		last = w.start(nil)
	}
	pass(2 * time.Hour)
	if last == first && first.life.check() != nil {
		t.Logf("the first one ended: %v", <-first.ended)
		last = w.start(nil)
		pass(2 * time.Hour)
	}
	if err := last.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := w.machine("worker-2").State; got != fsmnode.Purged {
		t.Errorf("the node ends %s, want Purged", got)
	}
	if open := w.state().OpenActions(); len(open) != 0 {
		t.Errorf("actions are left open: %+v", open)
	}
	nodes, pods, _ := w.cluster.Snapshot()
	if len(nodes) != 5 || len(pods) != 1 || pods[0].Name != "kept" {
		t.Errorf("%d nodes and %d pods are left, want 5 and 1", len(nodes), len(pods))
	}
	checkIntentBeforeEffect(t, w)
	checkReplay(t, w)
	if lost := w.outdated(); len(lost) != 0 {
		t.Errorf("a journal that lost nothing says that it lost %+v", lost)
	}
	return first
}

// checkReplay expects a replay from the first event to equal the fold through
// the snapshot.
func checkReplay(t *testing.T, w *world) {
	t.Helper()
	replayed := fsm.NewState(fsmnode.Capability())
	for _, event := range w.events(journal.Query{}) {
		replayed.Apply(event)
	}
	want, err := replayed.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.state().Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.State, want.State) {
		t.Errorf("replay differs from the live state:\n%s\n%s", want.State, got.State)
	}
}
