package actions_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func (w *world) cancel(actor, reason string) {
	w.append(actor, journal.ActionCancelling{Reason: reason}, journal.TypeActionCancelling)
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
				r := w.start(w.config(k.kinds()))
				letPass(time.Second)
				w.cancel(actor, "changed my mind")
				w.tell(r, journal.TypeActionCancelling)
				r.end()
				w.wantStory("requested", "planned 2", "started a #1", "cancelling", "done a #1", want)
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
				w.runToEnd(w.config(k.kinds()))
				w.wantStory("requested", "cancelling", want)
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
		r := w.start(w.config(k.kinds()))
		letPass(time.Second)
		w.cancel("cli:me@here", "too late")
		w.tell(r, journal.TypeActionCancelling)
		r.end()
		w.wantStory("requested", "planned 2", "started a #1", "cancelling", "done a #1", "started b #1", "done b #1", "ended done")
	})
}

func TestACancelInterruptsPlanningAndHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{plan: func() error { return errBroken }}
		w.requestTest()
		r := w.start(w.config(k.kinds()))
		letPass(time.Minute)
		w.cancel("cli:me@here", "no use")
		w.tell(r, journal.TypeActionCancelling)
		r.end()
		if got := w.lastLine(); got != "ended cancelled no use" {
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
		r := w.start(w.config(k.kinds()))
		letPass(time.Hour)
		if got := w.lastLine(); got != "stalled bad" {
			t.Fatalf("after an hour the journal ends with %q", got)
		}
		if w.count("failed bad") != 10 || w.count("failed bad #10 for good") != 1 || w.count("done good") != 1 {
			t.Errorf("the journal says %q", w.story())
		}
		if stalled := w.record().Stalled; stalled == nil || !strings.Contains(stalled.Reason, errBroken.Error()) {
			t.Errorf("stalled for %v", stalled)
		}
		fixed.Store(true)
		w.retry(r)
		took := r.end()
		if got := w.lastLine(); got != "ended done" {
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
		r := w.start(w.config(k.kinds()))
		letPass(time.Hour)
		r.halt()
		before := len(w.story())
		fixed.Store(true)
		r = w.start(w.config(k.kinds()))
		letPass(time.Hour)
		if got := len(w.story()); got != before {
			t.Errorf("it went on by itself: %q", w.story()[before:])
		}
		w.cancel("cli:me@here", "give up")
		w.tell(r, journal.TypeActionCancelling)
		r.end()
		if got := w.lastLine(); got != "ended cancelled give up" {
			t.Errorf("the action %s", got)
		}
	})
}

func TestTheBudgetSurvivesRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, _ := stalledWorld(w)
		w.requestTest()
		for range 100 { // more than the budget allows, and no more than anybody waits for
			if w.count("stalled") != 0 {
				break
			}
			r := w.start(w.config(k.kinds()))
			letPass(30 * time.Second)
			r.halt()
		}
		if got := w.count("failed bad"); got != 10 {
			t.Errorf("%d failures before the action stalled, want 10", got)
		}
	})
}

func TestARetryThatWasAskedForBeforeTheActionStalledDoesNotUnstallIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, _ := stalledWorld(w)
		w.requestTest()
		w.append("cli:me@here", journal.ActionRetried{}, journal.TypeActionRetried)
		r := w.start(w.config(k.kinds()))
		letPass(time.Hour)
		before := len(w.story())
		w.tell(r, journal.TypeActionRetried)
		letPass(time.Hour)
		r.halt()
		if got := len(w.story()); got != before {
			t.Errorf("it went on: %q", w.story()[before:])
		}
	})
}

func TestARetryChecksAHoldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.start(w.guardedBy(k, guard))
		letPass(10 * time.Minute)
		guard.turn(actions.Pass())
		w.retry(r)
		if took := r.end(); took > 100*time.Millisecond {
			t.Errorf("the retry took %s, want at once", took)
		}
	})
}

func TestACancelThatComesBeforeAPreflightAnsweredWinsOverTheStep(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, w *world) {
			a := guarded("a", "X")
			a.Irreversible = true
			k := &script{steps: []journal.PlannedStep{a, step("b")}}
			w.requestTest()
			answer, gate := make(chan struct{}), make(chan struct{})
			cfg := withPreflights(w.config(k.kinds()), map[string]actions.Preflight{
				"X": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
					<-answer
					return actions.Pass()
				}),
			})
			cfg.Store = gatedStore{Store: w.store, kind: journal.TypeStepDone, gate: gate}
			r := w.start(cfg)
			letPass(time.Second) // the runner is busy writing down that b is done
			w.cancel("cli:me@here", "in time")
			w.tell(r, journal.TypeActionCancelling)
			close(answer)
			synctest.Wait()
			close(gate)
			r.end()
			w.wantStory("requested", "planned 2", "started b #1", "cancelling", "done b #1", "ended cancelled in time")
		})
	}
}

func TestARetryGivesTheWholeBudgetAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, _ := stalledWorld(w)
		w.requestTest()
		r := w.start(w.config(k.kinds()))
		letPass(time.Hour)
		w.retry(r)
		letPass(time.Hour)
		r.halt()
		if w.count("failed bad") != 20 || w.count("stalled") != 2 {
			t.Errorf("%d failures and %d stalls, want 20 and 2", w.count("failed bad"), w.count("stalled"))
		}
	})
}
