package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
)

// runBeside runs what is to run beside the ring, as soon as it knows its cluster.
func (r *Ring) runBeside(ctx context.Context) {
	ctx, r.stopBeside = context.WithCancel(ctx)
	if r.cfg.Beside == nil {
		return
	}
	r.besideWG.Go(func() {
		select {
		case <-r.identified:
			r.cfg.Beside(ctx, r.mayChange, r.isOpen)
		case <-ctx.Done():
		}
	})
}

// mayChange reports whether anything may be changed now that no action is about to.
func (r *Ring) mayChange() (may bool) {
	err := r.ask(context.Background(), func(s *fsm.State) { may = !s.Journal.SafeMode() && !r.cfg.Policy.DryRun })
	return err == nil && may
}

// isOpen reports whether an action of that id is open, as far as can be told.
func (r *Ring) isOpen(action string) (open bool) {
	err := r.ask(context.Background(), func(s *fsm.State) { _, open = s.OpenAction(action) })
	return err != nil || open
}
