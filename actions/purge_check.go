package actions

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

const doesCheck = "check"

// behindGate puts a step before all others that has no effect and lists what
// must be right before anything is destroyed, whichever step needs it.
func behindGate(steps []journal.PlannedStep, gate []string) []journal.PlannedStep {
	check := journal.PlannedStep{
		ID: doesCheck, Does: doesCheck,
		Preflights: guarded(nil, gate...), Timeout: journal.Duration(lookTimeout),
	}
	for i := range steps {
		steps[i].After = append(steps[i].After, doesCheck)
	}
	return slices.Insert(steps, 0, check)
}

// checkStep is done once its preflights let it start.
type checkStep struct{}

// Prove implements [Step].
func (checkStep) Prove(context.Context, StepContext) (Proof, error) { return Proof{Done: true}, nil }

// Do implements [Step].
func (checkStep) Do(context.Context, StepContext) (json.RawMessage, error) { return nil, nil }
