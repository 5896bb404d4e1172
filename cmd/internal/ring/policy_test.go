package ring

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// objection is something that policy has against automatic actions, and how it
// goes away.
type objection struct {
	rule        string
	raise, lift func(w *world, in *incarnation)
}

func pausing(node string) objection {
	return objection{
		fsm.RulePaused,
		func(w *world, in *incarnation) {
			w.command(in.Backend(nil).Do(w.t.Context(), api.PauseRequest{Name: node, Reason: "new switch", Actor: "cli:root@test"}))
		},
		func(w *world, in *incarnation) {
			w.command(in.Backend(nil).Do(w.t.Context(), api.ResumeRequest{Name: node, Actor: "cli:root@test"}))
		},
	}
}

func (w *world) command(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// tell appends an event behind the ring's back.
func (w *world) tell(subject journal.Subject, kind journal.Type, payload journal.Payload) {
	w.t.Helper()
	if _, err := w.store.Append(w.t.Context(), journal.Draft{Type: kind, Subject: subject, Actor: "test", Payload: payload}); err != nil {
		w.t.Fatal(err)
	}
}

func objections() map[string]objection {
	others := []string{"primary-1", "primary-2", "worker-1", "worker-3"}
	return map[string]objection{
		"everything paused": pausing(""),
		"the node paused":   pausing("worker-2"),
		"a storm": {
			fsmnode.RuleStormBrake,
			func(w *world, _ *incarnation) {
				for _, name := range others {
					w.cluster.LoseNode(name)
				}
			},
			func(w *world, _ *incarnation) {
				for _, name := range others {
					w.cluster.ReturnNode(name)
				}
			},
		},
		"the node excluded": {
			fsmnode.RuleExcluded,
			func(w *world, _ *incarnation) { w.cluster.Exclude("worker-2", true) },
			func(w *world, _ *incarnation) { w.cluster.Exclude("worker-2", false) },
		},
		"the API was lost": {
			fsm.RuleAPIUnreachable,
			func(w *world, _ *incarnation) {
				w.tell(journal.ClusterSubject, journal.TypeAPILost, journal.APILost{Error: "no answer"})
			},
			func(w *world, _ *incarnation) {
				w.tell(journal.ClusterSubject, journal.TypeAPIRecovered, journal.APIRecovered{})
			},
		},
		"safe mode": {
			fsm.RuleSafeMode,
			func(w *world, _ *incarnation) {
				w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{DamagedFile: "f"})
			},
			func(w *world, _ *incarnation) {
				w.tell(journal.JournalSubject, journal.TypeJournalAccepted, journal.JournalAccepted{})
			},
		},
	}
}

// openClear leaves a clear-node of worker-2 open whose pods cannot be deleted
// yet.
func (w *world) openClear() *incarnation {
	w.t.Helper()
	w.addPods()
	in := w.start(nil)
	pass(time.Minute)
	w.cluster.Forbid(kubesim.DeletePods)
	w.loseWorker()
	pass(6 * time.Minute)
	if open := w.state().OpenActions(); len(open) != 1 || open[0].Kind != journal.ActionClearNode || len(open[0].Steps) != 2 {
		w.t.Fatalf("open is %+v, want a clear-node with two steps begun", open)
	}
	return in
}

func (w *world) wantPodsDeleted(want int) {
	w.t.Helper()
	deleted := 0
	for _, effect := range w.cluster.Effects() {
		if strings.HasPrefix(effect.Name, "delete-pod") {
			deleted++
		}
	}
	if deleted != want {
		w.t.Errorf("%d pods were deleted, want %d", deleted, want)
	}
}

// heldBy returns the preflights that hold open actions.
func (w *world) heldBy() (preflights []string) {
	w.t.Helper()
	for _, record := range w.state().OpenActions() {
		for _, hold := range record.Holds {
			preflights = append(preflights, hold.Preflight)
		}
	}
	return preflights
}

func TestNoPodIsDeletedByAnOpenClearThatPolicyIsAgainst(t *testing.T) {
	for name, against := range objections() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.openClear()
				against.raise(w, in)
				w.cluster.Allow(kubesim.DeletePods)
				pass(2 * time.Minute)
				w.wantPodsDeleted(0)
				if held := w.heldBy(); !slices.Equal(held, []string{against.rule}) {
					t.Errorf("held by %q, want %s alone", held, against.rule)
				}
				against.lift(w, in)
				pass(2 * time.Minute)
				w.wantPodsDeleted(2)
				if err := in.stop(); err != nil {
					t.Error(err)
				}
				checkIntentBeforeEffect(t, w)
			})
		})
	}
}

func TestAnOpenClearIsNotGoneOnWithBeforeEKCOHasSettledAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.openClear().stop(); err != nil {
			t.Fatal(err)
		}
		w.cluster.Allow(kubesim.DeletePods)
		in := w.start(nil)
		pass(w.policy.Settling - time.Second)
		w.wantPodsDeleted(0)
		pass(2 * time.Minute)
		w.wantPodsDeleted(2)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestANodeThatIsOnlyNotReadyIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.addPods()
		in := w.start(nil)
		pass(time.Minute)
		w.cluster.UnreadyNode("worker-2")
		w.cluster.TerminatePods("worker-2", time.Now())
		pass(24 * time.Hour)
		for _, effect := range w.cluster.Effects() {
			if effect.Name != "write-mirror" {
				t.Errorf("it did %s", effect.Name)
			}
		}
		if n := w.machine("worker-2"); n.State != fsmnode.Healthy {
			t.Errorf("the node is %s", n.State)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
