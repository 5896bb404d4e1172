// Package object is for actions that set a value in one Kubernetes object. It has their preflight, which checks that it
// is still the planned object, and their step.
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
	// Noun is its name in messages.
	Noun string
	// Read reads its facts live. UID returns the UID in the facts.
	Read func(ctx context.Context, of journal.Subject) (F, error)
	UID  func(F) string
}

// StillThere checks that the result of Read is the action's object.
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

// Check implements [actions.Preflight] with a live read.
func (o Object[F]) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	live, err := o.Read(ctx, record.Subject)
	return o.StillThere(record, live, err)
}

// Set is a step that sets a value in an object. An In is the plan's facts: what to set. Its output is the object's new
// facts. All fields must be set.
type Set[In, F any] struct {
	Object[F]
	// Lacks returns which part of the value is not set yet, or "".
	Lacks func(of journal.Subject, in In, live F) string
	// Apply sets the value only in the object with the subject's UID. It must be idempotent.
	Apply func(ctx context.Context, of journal.Subject, in In) (F, error)
	// Changed is called after a change, to trigger a recheck.
	Changed func()
}

// Prove implements [actions.StepOf].
func (s Set[In, F]) Prove(ctx context.Context, step actions.StepContext, in In) (actions.Proof, error) {
	live, err := s.Read(ctx, step.Action.Subject)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks := s.Lacks(step.Action.Subject, in, live)
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
