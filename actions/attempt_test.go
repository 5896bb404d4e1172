package actions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

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
		result := attempt(t.Context(), t.Context(), code, step)
		if errors.Is(result.err, errDryRun) != dryRun || (code.effects == 0) != dryRun {
			t.Errorf("dry run %v: %d effects, %v", dryRun, code.effects, result.err)
		}
	}
}
