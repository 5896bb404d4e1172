package replica

import (
	"context"
	"iter"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// forEach calls do for each item, with at most limit calls at the same time, and returns the first error. After an
// error it starts no new calls and cancels the context of the running calls.
func forEach[I any](ctx context.Context, limit int, items iter.Seq[I], do func(context.Context, I) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all parallel.Group
	places := make(chan struct{}, limit)
	caught := parallel.Catch(func() {
		for item := range items {
			places <- struct{}{}
			if ctx.Err() != nil {
				return
			}
			all.Go(func() {
				defer func() { <-places }()
				if err := do(ctx, item); err != nil {
					stop(err)
				}
			})
		}
	})
	all.Wait().Raise()
	caught.Raise()
	return context.Cause(ctx)
}
