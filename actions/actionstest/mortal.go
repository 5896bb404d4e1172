package actionstest

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// Mortal returns the kinds with a crash point before and after each effect of a step. If a step makes several calls,
// its clients must also call [Fuse.Around].
func (f *Fuse) Mortal(kinds ...actions.Definition) []actions.Definition {
	mortal := make([]actions.Definition, len(kinds))
	for i, kind := range kinds {
		plan := kind.Plan
		kind.Plan = func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
			if err := f.Alive(); err != nil {
				return journal.Plan{}, err
			}
			return plan(ctx, record)
		}
		kind.Steps = maps.Clone(kind.Steps)
		for does, step := range kind.Steps {
			kind.Steps[does] = f.mortal(step)
		}
		mortal[i] = kind
	}
	return mortal
}

// mortal returns a step whose functions fail or do nothing after the process is dead.
func (f *Fuse) mortal(step actions.StepDef) actions.StepDef {
	step.Step = mortalStep{step.Step, f}
	if cleanUp := step.CleanUp; cleanUp != nil {
		step.CleanUp = func(ctx context.Context, step actions.StepContext, failed error) {
			if f.Alive() == nil {
				cleanUp(ctx, step, failed)
			}
		}
	}
	if skips := step.FindSkipped; skips != nil {
		step.FindSkipped = func(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
			if err := f.Alive(); err != nil {
				return nil, err
			}
			return skips(ctx, step)
		}
	}
	return step
}

// mortalStep is a step that dies with the process of one fuse.
type mortalStep struct {
	actions.Step
	fuse *Fuse
}

func (s mortalStep) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if err := s.fuse.Alive(); err != nil {
		return actions.Proof{}, err
	}
	return s.Step.Prove(ctx, step)
}

func (s mortalStep) Do(ctx context.Context, step actions.StepContext) (outputs json.RawMessage, err error) {
	err = s.fuse.Around(step.Planned.ID, func() (err error) {
		outputs, err = s.Step.Do(ctx, step)
		return err
	})
	return outputs, err
}
