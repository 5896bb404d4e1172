package actions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// counted counts its effects.
type counted struct{ effects int }

func (c *counted) Do(context.Context, StepContext) (json.RawMessage, error) {
	c.effects++
	return nil, nil
}

func (c *counted) Prove(context.Context, StepContext) (Proof, error) {
	return Proof{Done: c.effects > 0, Missing: "the effect"}, nil
}

func TestNoEffectIsEverCausedInADryRun(t *testing.T) {
	for _, dryRun := range []bool{true, false} {
		code := &counted{}
		step := StepContext{
			Action:  journal.ActionRecord{ID: "a-1", Request: journal.ActionRequested{DryRun: dryRun}},
			Planned: journal.PlannedStep{ID: "a"}, Log: slog.New(slog.DiscardHandler),
		}
		result := attempt(t.Context(), t.Context(), StepDef{Step: code}, step)
		if errors.Is(result.err, errDryRun) != dryRun || (code.effects == 0) != dryRun {
			t.Errorf("dry run %v: %d effects, %v", dryRun, code.effects, result.err)
		}
	}
}

func TestWhatDoesNotShowInTimeIsSaidWithoutTheContext(t *testing.T) {
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, test := range map[string]struct {
		ctx           context.Context
		missing, want string
	}{
		"too late":         {late, "pod p is there", "no success within 1m0s: pod p is there"},
		"too late, unsaid": {late, "", "no success within 1m0s: " + defaultMissing},
		"left":             {left, "pod p is there", "pod p is there: context canceled"},
	} {
		_, err := Await(test.ctx, noWakeUp, func(context.Context) (Proof, error) { return Proof{Missing: test.missing}, nil })
		if err = timedOut(test.ctx, time.Minute, err); err.Error() != test.want || !errors.Is(err, test.ctx.Err()) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
