package replica

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Extent is how much there is.
type Extent struct {
	Buckets, Versions, Bytes int64
	// Newest is that of [Result].
	Newest time.Time
}

func later(one, other time.Time) time.Time {
	if other.After(one) {
		return other
	}
	return one
}

// Survey counts what a store has: the versions of all objects, with their delete
// markers and the bytes of their content.
func Survey(ctx context.Context, store s3.Source) (Extent, error) {
	extent := Extent{Newest: time.Unix(0, 0).UTC()}
	buckets, err := store.Buckets(ctx)
	if err != nil {
		return Extent{}, err
	}
	extent.Buckets = int64(len(buckets))
	var mu sync.Mutex
	err = eachOf(ctx, bucketsAtOnce, slices.Values(buckets), func(ctx context.Context, bucket string) error {
		var versions, bytes int64
		var newest time.Time
		for v, err := range store.Versions(ctx, bucket, "") {
			if err != nil {
				return err
			}
			versions++
			bytes += v.Size
			newest = later(newest, v.Modified)
		}
		mu.Lock()
		defer mu.Unlock()
		extent.Versions += versions
		extent.Bytes += bytes
		extent.Newest = later(extent.Newest, newest)
		return nil
	})
	if err != nil {
		return Extent{}, err
	}
	return extent, nil
}
