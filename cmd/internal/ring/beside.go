package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
)

// runBeside waits until the start is complete, and then runs Config.Beside until the ring stops.
func (r *Ring) runBeside(ctx context.Context) {
	ctx, r.stopBeside = context.WithCancel(ctx)
	if r.cfg.Beside == nil {
		return
	}
	r.besideWG.Go(func() {
		select {
		case <-r.startDone:
			r.cfg.Beside(ctx, r.mayChange, r.isOpen)
		case <-ctx.Done():
		}
	})
}

// mayChange reports whether EKCO may change the cluster now.
func (r *Ring) mayChange() (may bool) {
	err := r.ask(context.Background(), func(s *fsm.State) { may = !s.Journal.SafeMode() && !r.cfg.Policy.DryRun })
	return err == nil && may
}

// isOpen reports whether the action is open. It returns true if that is unknown.
func (r *Ring) isOpen(action string) (open bool) {
	err := r.ask(context.Background(), func(s *fsm.State) { _, open = s.OpenAction(action) })
	return err != nil || open
}
