package plane

import (
	"context"
	"errors"
	"os"
	"time"
)

// errParentGone is the cause of the end of a WithParent context when the parent has ended.
var errParentGone = errors.New("the process that started this control plane has ended")

// WithParent returns a context that ends at most a quarter of a second after this process's parent. stop ends the
// watch.
func WithParent(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	parent := os.Getppid()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(errParentGone)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
