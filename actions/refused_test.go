package actions_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// refusal is a script of which a step has something to do at each look, and nothing comes of it
// until it is let through.
type refusal struct {
	*script
	of string

	lock  sync.Mutex
	done  bool
	fails error
}

// lift has the step done by its next attempt.
func (f *refusal) lift() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.done = true
}

// failWith has its attempts fail otherwise.
func (f *refusal) failWith(err error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.fails = err
}

// now returns whether it was lifted, and how attempts fail if not.
func (f *refusal) now() (bool, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.done, f.fails
}

func refused(of string, k *script) *refusal {
	f := &refusal{script: k, of: of, fails: &actions.UnfinishedError{Left: "it is forbidden", Waits: true}}
	k.do = func(_ context.Context, id string) error {
		if done, fails := f.now(); id == of && !done {
			return fails
		}
		return nil
	}
	k.prove = func(_ context.Context, id string) (bool, error) {
		called := false
		for _, did := range k.calls() {
			called = called || did == id
		}
		done, _ := f.now()
		return called && (id != of || done), nil
	}
	return f
}

// TestWhatIsRefusedForGoodDoesNotFillTheJournal: it is tried for as long as it takes.
func TestWhatIsRefusedForGoodDoesNotFillTheJournal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := refused("a", &script{steps: []journal.PlannedStep{step("a")}})
		w.requestTest()
		r := w.Start(w.Config(f.kinds()))
		w.Pass(time.Hour)
		if tries := w.Count("started a"); tries < 100 || tries > 140 {
			t.Errorf("it was tried %d times in an hour", tries)
		}
		w.Pass(24 * time.Hour)
		if events, said := len(w.Story()), w.Count(`held "a" by NextAttempt`); events > 6500 || said != 1 || w.Count("released") != 0 {
			t.Errorf("%d events in a day, held %d times, released %d times", events, said, w.Count("released"))
		}
		r.Halt()
	})
}

func TestWhyAttemptsAreInVainHoldsAStepUntilOneIsNot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := refused("a", &script{steps: []journal.PlannedStep{step("a")}})
		w.requestTest()
		cfg := w.Config(f.kinds())
		r := w.Start(cfg)
		w.Pass(time.Minute)
		since := w.Record().HeldSince["a"]
		r.Halt()
		r = w.Start(cfg)
		w.Pass(time.Hour)
		record := w.Record()
		if hold := record.Holds["a"]; hold.Preflight != actions.HoldNextAttempt || hold.Reason != "it is forbidden" || !record.HeldSince["a"].Equal(since) || since.IsZero() {
			t.Errorf("it is held by %+v since %s, and was since %s", hold, record.HeldSince["a"], since)
		}
		f.lift()
		w.Retry(r)
		if took := r.End(); took > 2*time.Second || w.LastLine() != "ended done" {
			t.Errorf("took %s: %s", took, w.LastLine())
		}
	})
}

func TestAHoldForAttemptsInVainEndsWithASuccessOrAnotherFailure(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *refusal)
		want   string
	}{
		"success": {(*refusal).lift, "ended done"},
		"failure": {func(f *refusal) { f.failWith(errBroken) }, `released "a" by NextAttempt`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				f := refused("a", &script{steps: []journal.PlannedStep{step("a")}})
				w.requestTest()
				r := w.Start(w.Config(f.kinds()))
				w.Pass(time.Minute)
				test.change(f)
				w.Pass(2 * time.Minute)
				if w.Count(test.want) != 1 || w.Count("held") != 1 {
					t.Errorf("%q", w.Story())
				}
				if w.Ended() {
					r.End()
				} else {
					r.Halt()
				}
			})
		})
	}
}

func TestAnUndoStepThatIsRefusedIsHeldAndHoldsNobodyElseUp(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights = []string{"X"}
		f := refused("undo a", k)
		w.requestTest()
		r := w.Start(w.guardedBy(k, actionstest.NewPreflight(actions.Hold("not yet"))))
		w.Pass(time.Minute)
		w.Cancel(r)
		w.Pass(time.Hour)
		record := w.Record()
		if hold := record.Holds["undo a"]; hold.Preflight != actions.HoldNextAttempt || w.Count("held \"undo a\"") != 1 || record.Stalled != nil {
			t.Errorf("held by %v: %q", record.Holds, w.Story())
		}
		if _, deferred := record.Deferred(); deferred {
			t.Error("it counts as done but for what may wait")
		}
		f.lift()
		r.End()
		if !strings.HasPrefix(w.LastLine(), "ended cancelled") {
			t.Error(w.LastLine())
		}
	})
}

// TestAHoldBetweenAttemptsIsNoAttemptInVain: what speaks against the next one is said instead, and
// that it goes does not find the step at rest.
func TestAHoldBetweenAttemptsIsNoAttemptInVain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		f := refused("a", k)
		inner := k.do
		k.do = func(ctx context.Context, id string) error {
			guard.SetVerdict(actions.Hold("look at what was found"))
			return inner(ctx, id)
		}
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		for range 5 {
			w.Pass(time.Hour)
			guard.SetVerdict(actions.Pass())
		}
		w.Pass(time.Minute)
		if w.Count("by NextAttempt") != 0 || w.Count("started a") != 6 {
			t.Errorf("%q", w.Story())
		}
		f.lift()
		r.Halt()
	})
}

// TestAStepPutAsideIsNotReleasedWithItsGroup: what began to wait for a preflight, or before a
// restart, waits by itself then.
func TestAStepPutAsideIsNotReleasedWithItsGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.off["n02"] = true
		k := &script{steps: []journal.PlannedStep{step("set"), step("b")}}
		k.steps[0].Does, k.steps[0].Input = "set", []byte(`["n01","n02"]`)
		k.do = func(_ context.Context, id string) error { return errBroken }
		k.prove = func(context.Context, string) (bool, error) { return false, nil }
		kind := k.definition()
		kind.Steps["set"] = actions.StepDef{Step: f.step(0), SlowProof: true}
		w.requestTest()
		cfg := w.Config([]actions.Definition{kind})
		r := w.Start(cfg)
		w.Pass(2 * time.Second)
		r.Halt()
		r = w.Start(cfg)
		w.Pass(10 * time.Minute) // the other one is tried again and again
		if w.Count(`held "set" by Items`) != 1 || w.Count("released") != 0 || w.Count("started b") < 5 {
			t.Errorf("%q", w.Story())
		}
		r.Halt()
	})
}
