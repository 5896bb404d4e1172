package actions_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// slow is a step that has its effect an hour after it was begun, unless it may not by then.
type slow struct {
	*script
	asks func(actions.StepContext, context.Context) error
}

func (s slow) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	time.Sleep(time.Hour)
	if err := s.asks(step, ctx); err != nil {
		return nil, err
	}
	return s.script.Do(ctx, step)
}

func (s slow) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if s.asks(step, ctx) == nil {
		panic("nothing is asked outside of Do")
	}
	return s.script.Prove(ctx, step)
}

func TestASlowStepIsHeldBeforeItsEffect(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		for name, test := range map[string]struct {
			asks      func(actions.StepContext, context.Context) error
			preflight string
			held      bool
		}{
			"by policy":         {actions.StepContext.CheckAgain, "Paused", true},
			"by a check":        {actions.StepContext.CheckAgain, "X", true},
			"by policy alone":   {actions.StepContext.CheckPolicy, "Paused", true},
			"by what is last":   {actions.StepContext.CheckPolicy, "NodeStillGone", true},
			"not by the others": {actions.StepContext.CheckPolicy, "X", false},
		} {
			w := &world{actionstest.NewWorld(w.T)}
			code := slow{&script{}, test.asks}
			planned := guarded("a", "X", "NodeStillGone")
			planned.Timeout = journal.Duration(2 * time.Hour)
			code.steps = []journal.PlannedStep{planned}
			definition := code.definition()
			definition.Steps = map[string]actions.StepDef{"act": {Step: code}}
			cfg, dial := w.Config([]actions.Definition{definition}), actionstest.NewPreflight(actions.Pass())
			for _, check := range []string{"X", "NodeStillGone"} {
				cfg.Preflights[check] = actionstest.Always(actions.Pass())
			}
			cfg.Preflights[test.preflight] = dial
			w.requestTest()
			r := w.Start(cfg)
			w.Pass(time.Minute)
			dial.SetVerdict(actions.Hold("paused"))
			w.Pass(3 * time.Hour)
			if did := len(code.calls()) > 0; did == test.held {
				w.T.Errorf("%s: it did: %t; %v", name, did, w.Story())
			}
			if test.held {
				if now := w.Record(); now.Holds["a"].Preflight != test.preflight || now.Steps["a"].Failures != 0 {
					w.T.Errorf("%s: it is held by %+v, after %d failures", name, now.Holds, now.Steps["a"].Failures)
				}
			}
			dial.SetVerdict(actions.Pass())
			r.End()
			if len(code.calls()) != 1 {
				w.T.Errorf("%s: it did so %d times", name, len(code.calls()))
			}
		}
	})
}

// TestAStepAsksAgainAsItWasAskedBefore: this attempt has not failed.
func TestAStepAsksAgainAsItWasAskedBefore(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		code := slow{&script{}, actions.StepContext.CheckAgain}
		planned := guarded("a", "X")
		planned.Timeout = journal.Duration(2 * time.Hour)
		code.steps = []journal.PlannedStep{planned}
		definition := code.definition()
		definition.Steps = map[string]actions.StepDef{"act": {Step: code}}
		cfg := w.Config([]actions.Definition{definition})
		cfg.Preflights["X"] = actions.PreflightFunc(func(_ context.Context, record journal.ActionRecord) actions.Verdict {
			if record.Steps["a"].Attempts > 0 {
				return actions.Hold("it rests after an attempt that failed")
			}
			return actions.Pass()
		})
		w.requestTest()
		r := w.Start(cfg)
		r.End()
		if len(code.calls()) != 1 {
			w.T.Errorf("%v", w.Story())
		}
	})
}

// TestAStepWaitsForTheEarlierStepThatItRepeats also if the steps between the two stay done.
func TestAStepWaitsForTheEarlierStepThatItRepeats(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		code := &script{steps: []journal.PlannedStep{step("a"), step("b", "a"), step("c", "b")}}
		var mu sync.Mutex
		valid, failed := map[string]bool{}, false
		code.prove = func(_ context.Context, id string) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return valid[id], nil
		}
		code.do = func(_ context.Context, id string) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case id == "c" && !failed:
				valid["a"] = false
				failed = true
				return &actions.UnfinishedError{Left: "a is no longer valid", Waits: true, RepeatStep: "a"}
			case id == "a" && failed && len(code.calls()) == 4:
				return errBroken
			}
			valid[id] = true
			return nil
		}
		w.requestTest()
		w.Start(w.Config(code.kinds())).End()
		if got := strings.Join(code.calls(), ""); got != "abcaac" {
			t.Errorf("the steps ran as %s", got)
		}
	})
}
