package actions

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// DoesGate is what the step at the beginning of a plan does that only asks. It is in
// the plans of older versions.
const DoesGate = "check"

// BehindGate puts a step before all others that has no effect and lists what must be
// right before anything is destroyed, whichever step needs it. It is asked again
// before the first step that changes something and the first that cannot be undone.
func BehindGate(steps []journal.PlannedStep, preflights []string) []journal.PlannedStep {
	gate := journal.PlannedStep{
		ID: DoesGate, Does: DoesGate,
		Preflights: preflights, Timeout: journal.Duration(lookTimeout),
	}
	for i := range steps {
		steps[i].After = append(steps[i].After, DoesGate)
	}
	return slices.Insert(steps, 0, gate)
}

// gateStep is done once its preflights let it start.
type gateStep struct{}

// Prove implements [Step].
func (gateStep) Prove(context.Context, StepContext) (Proof, error) { return Proof{Done: true}, nil }

// Do implements [Step].
func (gateStep) Do(context.Context, StepContext) (json.RawMessage, error) { return nil, nil }
