package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Needed returns a function that reports which events must stay. These are the events that a fold without a snapshot
// needs (see [fsm.State.Needs]), and the event that the mirror names, because the next start compares its hash. The
// journal itself keeps the events of open actions.
func (r *Ring) Needed(ctx context.Context) (func(journal.Event) bool, error) {
	covered := r.mirror.Covered().Seq
	var needs fsm.Needs
	err := r.do(ctx, func(s *fsm.State) { needs = s.Needs() })
	return func(event journal.Event) bool { return event.Seq == covered || needs.Keeps(event) }, err
}

// MayPrune reports whether old files next to the journal may be deleted; see [fsm.State.MayPrune].
func (r *Ring) MayPrune(ctx context.Context) (may bool, err error) {
	err = r.do(ctx, func(s *fsm.State) { may = r.unrecordedJump == nil && !journal.FarApart(r.clockSkew()) && s.MayPrune() })
	return may, err
}
