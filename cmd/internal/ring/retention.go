package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Needed returns a function that reports which events the state would miss if
// it were folded again without a snapshot, see [fsm.State.Needs]; and the event that
// the mirror names, whose hash is compared at the next start. The journal keeps the
// events of open actions by itself.
func (r *Ring) Needed(ctx context.Context) (func(journal.Event) bool, error) {
	covered := r.mirror.Covered().Seq
	var needs fsm.Needs
	err := r.do(ctx, func(s *fsm.State) { needs = s.Needs() })
	return func(event journal.Event) bool { return event.Seq == covered || needs.Keeps(event) }, err
}

// MayPrune reports whether old files beside the journal may be removed, see [fsm.State.MayPrune].
func (r *Ring) MayPrune(ctx context.Context) (may bool, err error) {
	err = r.do(ctx, func(s *fsm.State) { may = r.adrift == nil && !journal.FarApart(r.clockSkew()) && s.MayPrune() })
	return may, err
}
