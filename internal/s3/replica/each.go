package replica

import (
	"context"
	"iter"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// eachOf calls do for each item, for at most limit of them at the same time, and returns the first
// error. After an error it starts no other call, and cancels the context of the running ones.
func eachOf[I any](ctx context.Context, limit int, items iter.Seq[I], do func(context.Context, I) error) error {
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
