package actionstest

import (
	"context"
	"encoding/json"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// Mortal returns the kinds as the incarnation runs them: each effect of a step is
// between two crash points. Steps that make several calls need more: clients whose
// every call goes through [Fuse.Around].
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
		steps := make(map[string]actions.Step, len(kind.Steps))
		for does, step := range kind.Steps {
			steps[does] = f.mortal(step)
		}
		kind.Steps = steps
		mortal[i] = kind
	}
	return mortal
}

// mortal is urgent where the step is.
func (f *Fuse) mortal(step actions.Step) actions.Step {
	if urgent, is := step.(actions.UrgentStep); is {
		return urgentMortal{mortalStep{step, f}, urgent}
	}
	return mortalStep{step, f}
}

type urgentMortal struct {
	mortalStep
	urgent actions.UrgentStep
}

// Urgent is what the step says of itself.
func (s urgentMortal) Urgent(step actions.StepContext) bool { return s.urgent.Urgent(step) }

// mortalStep is a step as one incarnation runs it.
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

// Atomic is what the step says of itself.
func (s mortalStep) Atomic() bool {
	atomic, ok := s.Step.(actions.AtomicStep)
	return ok && atomic.Atomic()
}

// Interruptible is what the step says of itself.
func (s mortalStep) Interruptible() bool {
	interruptible, ok := s.Step.(actions.InterruptibleStep)
	return ok && interruptible.Interruptible()
}

// Tidy is what the step does at the end of an attempt, unless the process is dead.
func (s mortalStep) Tidy(ctx context.Context, step actions.StepContext, failed error) {
	if tidying, ok := s.Step.(actions.TidyStep); ok && s.fuse.Alive() == nil {
		tidying.Tidy(ctx, step, failed)
	}
}

// Heed is what the step says.
func (s mortalStep) Heed(step actions.StepContext) <-chan struct{} {
	if heedful, ok := s.Step.(actions.HeedfulStep); ok {
		return heedful.Heed(step)
	}
	return nil
}

// Leaves is what the step says.
func (s mortalStep) Leaves(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	leaving, ok := s.Step.(actions.LeavingStep)
	if !ok {
		return nil, nil
	}
	if err := s.fuse.Alive(); err != nil {
		return nil, err
	}
	return leaving.Leaves(ctx, step)
}
