package replica

import (
	"context"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Extent is how much there is.
type Extent struct{ Buckets, Versions, Bytes int64 }

// Survey counts what a store has: the versions of all objects, with their delete
// markers and the bytes of their content.
func Survey(ctx context.Context, store s3.Source) (Extent, error) {
	var extent Extent
	buckets, err := store.Buckets(ctx)
	if err != nil {
		return Extent{}, err
	}
	for _, bucket := range buckets {
		extent.Buckets++
		for v, err := range store.Versions(ctx, bucket, "") {
			if err != nil {
				return Extent{}, err
			}
			extent.Versions++
			extent.Bytes += v.Size
		}
	}
	return extent, nil
}
