package observers

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// PolledOne is what [PollOne] observes: one object of the Kubernetes API, by its name.
type PolledOne[V any] struct {
	Noun[V]
	// Name is that of the source, Key that of the thing.
	Name, Key string
	// Get reads the object, reduced to what decisions need.
	Get func(context.Context) (V, error)
	// Interval is how often to read it; default is the observers' PollInterval.
	Interval time.Duration
}

// PollOne returns a source of one object, of which nothing but "get" is granted. That
// it is not found means that it no longer exists, if it did; as long as there is none,
// it is quietly awaited.
func PollOne[V any](what PolledOne[V]) Source {
	exists := false
	if what.Known != nil {
		for range what.Known {
			exists = true
		}
	}
	return Poll(Polled[V]{
		Noun: what.Noun, Name: what.Name, Interval: what.Interval, OfAPI: true,
		Ask: func(ctx context.Context) (map[string]V, error) {
			v, err := what.Get(ctx)
			switch gone := errors.Is(kube.Sentinel(err), kube.ErrNotFound); {
			case gone && exists:
				exists = ctx.Err() != nil // who no longer listens is told the next time
				return nil, nil
			case gone:
				return nil, ErrAbsent
			case err != nil:
				return nil, err
			}
			exists = true
			return map[string]V{what.Key: v}, nil
		},
	})
}
