// Package object has a preflight and a step for actions that set a value in one Kubernetes object. The preflight checks
// that the object is still the planned one.
package object

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Object is the object of an action. All fields must be set.
type Object[F any] struct {
	// Noun is the name of the object in messages.
	Noun string
	// Read reads the facts of the object without a cache. UID returns the UID in the facts.
	Read func(ctx context.Context, of journal.Subject) (F, error)
	UID  func(F) string
}

// StillThere requires that the result of Read is the action's object.
func (o Object[F]) StillThere(record journal.ActionRecord, live F, err error) actions.Verdict {
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Abandon("the " + o.Noun + " no longer exists").About("gone")
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case o.UID(live) != record.Subject.UID:
		return actions.Abandon("the " + o.Noun + " was replaced: its uid is " + o.UID(live) + " now").About("replaced")
	}
	return actions.Pass()
}

// Check implements [actions.Preflight]. It reads the object again.
func (o Object[F]) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	live, err := o.Read(ctx, record.Subject)
	return o.StillThere(record, live, err)
}

// Set is a step that sets a value in an object. In is the type of the plan's facts, which have the value. The outputs
// of the step are the new facts of the object. All fields must be set.
type Set[In, F any] struct {
	Object[F]
	// MissingPart names the part of the value that is not set yet, or returns "".
	MissingPart func(of journal.Subject, in In, live F) string
	// Apply sets the value, but only in an object with the subject's UID. It must be idempotent.
	Apply func(ctx context.Context, of journal.Subject, in In) (F, error)
	// Changed is called after a change, to trigger a new read.
	Changed func()
}

// Prove implements [actions.StepOf].
func (s Set[In, F]) Prove(ctx context.Context, step actions.StepContext, in In) (actions.Proof, error) {
	live, err := s.Read(ctx, step.Action.Subject)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks := s.MissingPart(step.Action.Subject, in, live)
	if s.UID(live) != step.Action.Subject.UID {
		lacks = "it was replaced"
	}
	outputs, err := json.Marshal(live)
	return actions.Proof{Done: lacks == "", Outputs: outputs, Missing: lacks}, err
}

// Do implements [actions.StepOf].
func (s Set[In, F]) Do(ctx context.Context, step actions.StepContext, in In) (json.RawMessage, error) {
	set, err := s.Apply(ctx, step.Action.Subject, in)
	if err != nil {
		return nil, err
	}
	s.Changed()
	return json.Marshal(set)
}
