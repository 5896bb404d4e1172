package actions

import (
	"context"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// DoesGate is the Does of a plan's gate: a first step that only asks preflights. Plans of older versions have it.
const DoesGate = "check"

// BehindGate puts a gate before all steps: a step without effect that lists the preflights that must pass before
// anything is destroyed. They are asked again before the first step that changes something and the first irreversible
// one.
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
type gateStep struct{ NoEffect }

// Prove implements [Step].
func (gateStep) Prove(context.Context, StepContext) (Proof, error) { return Proof{Done: true}, nil }
