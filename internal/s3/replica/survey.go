package replica

import (
	"context"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Extent is the number of buckets, versions and content bytes of a store.
type Extent struct {
	Buckets, Versions, Bytes int64
	Fingerprint              Fingerprint
}

// Survey counts the buckets of a store, the versions of all objects with their delete markers, and
// the bytes of their content.
func Survey(ctx context.Context, store s3.Source) (Extent, error) {
	var extent Extent
	buckets, err := store.Buckets(ctx)
	if err != nil {
		return Extent{}, err
	}
	extent.Buckets = int64(len(buckets))
	var mu sync.Mutex
	err = forEach(ctx, bucketsAtOnce, slices.Values(buckets), func(ctx context.Context, bucket string) error {
		var versions, bytes int64
		all := listedFingerprint(bucket, s3.Version{})
		for v, err := range store.Versions(ctx, bucket, "") {
			if err != nil {
				return err
			}
			versions++
			bytes += v.Size
			all.with(listedFingerprint(bucket, v))
		}
		mu.Lock()
		defer mu.Unlock()
		extent.Versions += versions
		extent.Bytes += bytes
		extent.Fingerprint.with(all)
		return nil
	})
	if err != nil {
		return Extent{}, err
	}
	return extent, nil
}
