package actions

import (
	"context"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// DoesGate is the Does of a plan's gate, a first step that only runs preflights. Plans of older versions also have this
// step.
const DoesGate = "check"

// BehindGate puts a gate before all steps: a step without effect whose preflights must pass before the action destroys
// anything. EKCO runs them again before the first step that changes something and before the first irreversible step.
func BehindGate(steps []journal.PlannedStep, preflights []string) []journal.PlannedStep {
	gate := journal.PlannedStep{
		ID: DoesGate, Does: DoesGate,
		Preflights: preflights, Timeout: journal.Duration(checkTimeout),
	}
	for i := range steps {
		steps[i].After = append(steps[i].After, DoesGate)
	}
	return slices.Insert(steps, 0, gate)
}

// gateStep has no effect and is done as soon as its preflights let it start.
type gateStep struct{ NoEffect }

func (gateStep) Prove(context.Context, StepContext) (Proof, error) { return Proof{Done: true}, nil }
