package plane

import (
	"context"
	"errors"
	"os"
	"time"
)

// errParentGone is the cause of a context from WithParent after the parent's end.
var errParentGone = errors.New("the process that started this control plane has ended")

// WithParent returns a context that ends when this process's parent ends, which
// is noticed within a quarter of a second. Call stop to end the watch.
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
