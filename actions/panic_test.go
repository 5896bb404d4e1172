package actions_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// boom panics in the way defects do.
func boom() {
	var facts any = "text"
	_ = facts.(fmt.Stringer)
}

func TestAPanicFailsItsStepAndNothingElse(t *testing.T) {
	started := func(w *world) {
		w.append("operator", journal.StepStarted{Step: "a", Attempt: 1}, journal.TypeStepStarted)
	}
	for name, test := range map[string]struct {
		before func(w *world)
		set    func(k *script) (preflight actions.Preflight)
	}{
		"in an effect": {set: func(k *script) actions.Preflight {
			k.do = func(_ context.Context, id string) error {
				if id == "a" {
					boom()
				}
				return nil
			}
			k.prove = func(_ context.Context, id string) (bool, error) { return id == "b", nil }
			return always(actions.Pass())
		}},
		"in a proof": {set: func(k *script) actions.Preflight {
			k.prove = func(_ context.Context, id string) (bool, error) {
				if id == "a" {
					boom()
				}
				return true, nil
			}
			return always(actions.Pass())
		}},
		"in the proof of a step that was open": {before: started, set: func(k *script) actions.Preflight {
			k.prove = func(_ context.Context, id string) (bool, error) {
				if id == "a" {
					boom()
				}
				return true, nil
			}
			return always(actions.Pass())
		}},
		"in a preflight": {set: func(*script) actions.Preflight {
			return actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict { boom(); return actions.Pass() })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{guarded("a", "X"), step("b")}}
				cfg := w.guardedBy(k, test.set(k))
				w.requestTest()
				if test.before != nil {
					w.append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
					test.before(w)
				}
				for range 3 { // a restart gives no new budget
					r := w.start(cfg)
					letPass(time.Hour)
					r.halt()
				}
				if got := w.count("failed a"); got != 10 || w.count("stalled") != 1 || w.count("done b") != 1 {
					t.Errorf("%d failures; %q", got, w.story())
				}
				failure := w.record().Steps["a"].LastError
				if !strings.Contains(failure, "interface conversion") || strings.Contains(failure, "goroutine") {
					t.Errorf("recorded %q", failure)
				}
				if !strings.Contains(w.logged.String(), "actions_test.boom") || strings.Contains(w.logged.String(), "debug.Stack") {
					t.Errorf("the stack in the log is not the panic's:\n%s", w.logged.String())
				}
			})
		})
	}
}

func TestAPanicWhilePlanningIsAVisibleHold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		k := &script{steps: []journal.PlannedStep{step("a")}, plan: func() error {
			if broken.Load() {
				boom()
			}
			return nil
		}}
		w.requestTest()
		r := w.start(w.config(k.kinds()))
		letPass(time.Hour)
		if hold := w.record().Holds[""]; hold.Preflight != actions.HoldPlan || !strings.Contains(hold.Reason, "panic") {
			t.Errorf("held %+v", hold)
		}
		broken.Store(false)
		r.end()
	})
}

func TestAPanicOfAPreflightIsAnErrorOfADryRun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		cfg := withPreflights(w.config(k.kinds()), map[string]actions.Preflight{
			"X": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict { boom(); return actions.Pass() }),
		})
		if _, _, err := actions.NewRunner(cfg).Explain(t.Context(), w.record()); err == nil || !strings.Contains(err.Error(), "X") {
			t.Errorf("explained with %v", err)
		}
	})
}
