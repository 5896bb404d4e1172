package actions_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func (w *world) cancel(actor, reason string) {
	w.Append(actor, journal.ActionCancelling{Reason: reason}, journal.TypeActionCancelling)
}

func TestACancelBeforeThePointOfNoReturnLetsRunningStepsFinishAndEndsTheAction(t *testing.T) {
	for actor, want := range map[string]string{
		"cli:me@here": "ended cancelled changed my mind",
		"operator":    "ended abandoned changed my mind",
	} {
		t.Run(actor, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}
				k.do = func(context.Context, string) error { <-time.After(10 * time.Second); return nil }
				w.requestTest()
				r := w.Start(w.Config(k.kinds()))
				w.Pass(time.Second)
				w.cancel(actor, "changed my mind")
				w.Tell(r, journal.TypeActionCancelling)
				r.End()
				w.WantStory("requested", "planned 2", "started a #1", "cancelling", "done a #1", want)
			})
		})
	}
}

func TestACancelOnRecordIsHeededAfterARestart(t *testing.T) {
	for actor, want := range map[string]string{"cli:me@here": "ended cancelled enough", "operator": "ended abandoned enough"} {
		t.Run(actor, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{step("a")}}
				w.requestTest()
				w.cancel(actor, "enough")
				w.RunToEnd(w.Config(k.kinds()))
				w.WantStory("requested", "cancelling", want)
			})
		})
	}
}

func TestACancelAfterThePointOfNoReturnIsIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := step("a")
		a.Irreversible = true
		k := &script{steps: []journal.PlannedStep{a, step("b", "a")}}
		k.do = func(context.Context, string) error { <-time.After(10 * time.Second); return nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Second)
		w.cancel("cli:me@here", "too late")
		w.Tell(r, journal.TypeActionCancelling)
		r.End()
		w.WantStory("requested", "planned 2", "started a #1", "cancelling", "done a #1", "started b #1", "done b #1", "ended done")
	})
}

func TestACancelInterruptsPlanningAndHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{plan: func() error { return errBroken }}
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Minute)
		w.cancel("cli:me@here", "no use")
		w.Tell(r, journal.TypeActionCancelling)
		r.End()
		if got := w.LastLine(); got != "ended cancelled no use" {
			t.Errorf("the action %s", got)
		}
	})
}

// stalledWorld has a step that fails until it is fixed, and another one.
func stalledWorld(w *world) (k *script, fixed *atomic.Bool) {
	fixed = new(atomic.Bool)
	k = &script{steps: []journal.PlannedStep{step("bad"), step("good")}}
	k.do = func(_ context.Context, id string) error {
		if id == "bad" && !fixed.Load() {
			return errBroken
		}
		return nil
	}
	k.prove = func(_ context.Context, id string) (bool, error) { return id == "good" || fixed.Load(), nil }
	return k, fixed
}

func TestASpentBudgetStallsTheActionUntilARetryGivesItANewOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, fixed := stalledWorld(w)
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		if got := w.LastLine(); got != "stalled bad" {
			t.Fatalf("after an hour the journal ends with %q", got)
		}
		if w.Count("failed bad") != 10 || w.Count("failed bad #10 for good") != 1 || w.Count("done good") != 1 {
			t.Errorf("the journal says %q", w.Story())
		}
		if stalled := w.Record().Stalled; stalled == nil || !strings.Contains(stalled.Reason, errBroken.Error()) {
			t.Errorf("stalled for %v", stalled)
		}
		fixed.Store(true)
		w.Retry(r)
		took := r.End()
		if got := w.LastLine(); got != "ended done" {
			t.Errorf("the action %s", got)
		}
		if took > time.Second {
			t.Errorf("the retry took %s, want at once", took)
		}
	})
}

func TestAStalledActionStaysStalledAfterARestartAndCanBeCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, fixed := stalledWorld(w)
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		r.Halt()
		before := len(w.Story())
		fixed.Store(true)
		r = w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		if got := len(w.Story()); got != before {
			t.Errorf("it went on by itself: %q", w.Story()[before:])
		}
		w.cancel("cli:me@here", "give up")
		w.Tell(r, journal.TypeActionCancelling)
		r.End()
		if got := w.LastLine(); got != "ended cancelled give up" {
			t.Errorf("the action %s", got)
		}
	})
}

func TestAStalledActionIsRetriedWhereItsKindSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, fixed := stalledWorld(w)
		stays := k.kinds()
		w.requestTest()
		r := w.Start(w.Config(stays))
		w.Pass(time.Hour) // it stalls under an EKCO that does not retry
		r.Halt()
		retries := k.definition()
		retries.RetriesStalled = true
		r = w.Start(w.Config([]actions.Definition{retries}))
		w.Pass(24 * time.Hour)
		if tries := w.Count("failed bad") - 10; tries < 6 || tries > 12 || w.Count("stalled") != 1 || w.Record().Stalled == nil {
			t.Errorf("%d more tries in a day: %q", tries, w.Story())
		}
		r.Halt()
		fixed.Store(true)
		r = w.Start(w.Config([]actions.Definition{retries}))
		if took := r.End(); took > 8*time.Hour || w.LastLine() != "ended done" {
			t.Errorf("after %s the action %s", took, w.LastLine())
		}
	})
}

func TestTheBudgetSurvivesRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, _ := stalledWorld(w)
		w.requestTest()
		for range 100 { // more than the budget allows, and no more than anybody waits for
			if w.Count("stalled") != 0 {
				break
			}
			r := w.Start(w.Config(k.kinds()))
			w.Pass(30 * time.Second)
			r.Halt()
		}
		if got := w.Count("failed bad"); got != 10 {
			t.Errorf("%d failures before the action stalled, want 10", got)
		}
	})
}

func TestARetryThatWasAskedForBeforeTheActionStalledDoesNotUnstallIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, _ := stalledWorld(w)
		w.requestTest()
		w.Append("cli:me@here", journal.ActionRetried{}, journal.TypeActionRetried)
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		before := len(w.Story())
		w.Tell(r, journal.TypeActionRetried)
		w.Pass(time.Hour)
		r.Halt()
		if got := len(w.Story()); got != before {
			t.Errorf("it went on: %q", w.Story()[before:])
		}
	})
}

func TestARetryChecksAHoldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(10 * time.Minute)
		guard.SetVerdict(actions.Pass())
		w.Retry(r)
		if took := r.End(); took > 100*time.Millisecond {
			t.Errorf("the retry took %s, want at once", took)
		}
	})
}

func TestACancelThatComesBeforeAPreflightAnsweredWinsOverTheStep(t *testing.T) {
	t.Parallel()
	for range 20 {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			w := &world{bare}
			a := guarded("a", "X")
			a.Irreversible = true
			k := &script{steps: []journal.PlannedStep{a, step("b")}}
			w.requestTest()
			answer, gate := make(chan struct{}), make(chan struct{})
			cfg := actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
				"X": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
					<-answer
					return actions.Pass()
				}),
			})
			cfg.Store = gatedStore{Store: w.Store, kind: journal.TypeStepDone, gate: gate}
			r := w.Start(cfg)
			w.Pass(time.Second) // the runner is busy writing down that b is done
			w.cancel("cli:me@here", "in time")
			w.Tell(r, journal.TypeActionCancelling)
			close(answer)
			synctest.Wait()
			close(gate)
			r.End()
			w.WantStory("requested", "planned 2", "started b #1", "cancelling", "done b #1", "ended cancelled in time")
		})
	}
}

func TestARetryGivesTheWholeBudgetAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, _ := stalledWorld(w)
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		w.Retry(r)
		w.Pass(time.Hour)
		r.Halt()
		if w.Count("failed bad") != 20 || w.Count("stalled") != 2 {
			t.Errorf("%d failures and %d stalls, want 20 and 2", w.Count("failed bad"), w.Count("stalled"))
		}
	})
}
