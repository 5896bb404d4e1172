package actions_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// boom panics in the way defects do.
func boom() {
	var facts any = "text"
	_ = facts.(fmt.Stringer)
}

func TestAPanicFailsItsStepAndNothingElse(t *testing.T) {
	started := func(w *world) {
		w.Append("operator", journal.StepStarted{Step: "a", Attempt: 1}, journal.TypeStepStarted)
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
			return actionstest.Always(actions.Pass())
		}},
		"in a proof": {set: func(k *script) actions.Preflight {
			k.prove = func(_ context.Context, id string) (bool, error) {
				if id == "a" {
					boom()
				}
				return true, nil
			}
			return actionstest.Always(actions.Pass())
		}},
		"in the proof of a step that was open": {before: started, set: func(k *script) actions.Preflight {
			k.prove = func(_ context.Context, id string) (bool, error) {
				if id == "a" {
					boom()
				}
				return true, nil
			}
			return actionstest.Always(actions.Pass())
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
					w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
					test.before(w)
				}
				for range 3 { // a restart gives no new budget
					r := w.Start(cfg)
					w.Pass(time.Hour)
					r.Halt()
				}
				if got := w.Count("failed a"); got != 10 || w.Count("stalled") != 1 || w.Count("done b") != 1 {
					t.Errorf("%d failures; %q", got, w.Story())
				}
				failure := w.Record().Steps["a"].LastError
				if !strings.Contains(failure, "interface conversion") || strings.Contains(failure, "goroutine") {
					t.Errorf("recorded %q", failure)
				}
				if !strings.Contains(w.Logged(), "actions_test.boom") || strings.Contains(w.Logged(), "debug.Stack") {
					t.Errorf("the stack in the log is not the panic's:\n%s", w.Logged())
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
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		if hold := w.Record().Holds[""]; hold.Preflight != actions.HoldPlan || !strings.Contains(hold.Reason, "panic") {
			t.Errorf("held %+v", hold)
		}
		broken.Store(false)
		r.End()
	})
}

func TestAPanicOfAPreflightIsAnErrorOfADryRun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		cfg := actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
			"X": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict { boom(); return actions.Pass() }),
		})
		if _, _, err := actions.NewRunner(cfg).Explain(t.Context(), w.Record()); err == nil || !strings.Contains(err.Error(), "X") {
			t.Errorf("explained with %v", err)
		}
	})
}
