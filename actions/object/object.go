// Package object is what actions share that set a value in one object of the Kubernetes
// API, which is read by its name: whether it is still the one that was planned for, and
// the step.
package object

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Object is what an action is about. All fields must be set.
type Object[F any] struct {
	// Noun is what people call it.
	Noun string
	// Read reads it live, reduced to facts. UID is that of the facts.
	Read func(ctx context.Context, of journal.Subject) (F, error)
	UID  func(F) string
}

// StillThere answers whether what was read, or the error with which that failed, is the
// object that the action is about.
func (o Object[F]) StillThere(record journal.ActionRecord, live F, err error) actions.Verdict {
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Abandon("there is no such " + o.Noun + " any more").About("gone")
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case o.UID(live) != record.Subject.UID:
		return actions.Abandon("the " + o.Noun + " was replaced: its uid is " + o.UID(live) + " now").About("replaced")
	}
	return actions.Pass()
}

// Check implements [actions.Preflight] by a live read.
func (o Object[F]) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	live, err := o.Read(ctx, record.Subject)
	return o.StillThere(record, live, err)
}

// Set is a step that sets a value in an object. It leaves the facts of the object as it is
// then. All fields must be set.
type Set[F any] struct {
	Object[F]
	// Lacks says what of the value is not there yet, or "".
	Lacks func(step actions.StepContext, live F) (string, error)
	// Apply sets the value in the object of the action's UID and in no other, and bears
	// being repeated.
	Apply func(ctx context.Context, step actions.StepContext) (F, error)
	// Changed is called when it has, so that the change is looked at.
	Changed func()
}

// Prove implements [actions.Step].
func (s Set[F]) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	live, err := s.Read(ctx, step.Action.Subject)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks, err := s.Lacks(step, live)
	if err != nil {
		return actions.Proof{}, err
	}
	if s.UID(live) != step.Action.Subject.UID {
		lacks = "it was replaced"
	}
	outputs, err := json.Marshal(live)
	return actions.Proof{Done: lacks == "", Outputs: outputs, Missing: lacks}, err
}

// Do implements [actions.Step].
func (s Set[F]) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	set, err := s.Apply(ctx, step)
	if err != nil {
		return nil, err
	}
	s.Changed()
	return json.Marshal(set)
}
