package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/internal/s3"
)

// listedPerRequest is the approximate number of versions that a store lists as part of a long listing in the time of
// a request for a single object.
const listedPerRequest = 50

// CompareAfter compares two stores right after a sync pass. No other client may have changed a store since
// the pass started. All objects that the pass did not change were equal. So CompareAfter compares only the
// changed objects, and the buckets with their settings. If the pass changed so many objects that [Compare] is as
// fast, it calls Compare. The report counts only the compared versions.
func CompareAfter(ctx context.Context, source, target s3.Source, pass Result, options CompareOptions) (Report, error) {
	if touched := pass.Touched; touched.Count > len(touched.Objects) || int64(touched.Count)*listedPerRequest > pass.Seen {
		return Compare(ctx, source, target, options)
	}
	c := newComparison(source, target, options)
	if err := c.eachCommonBucket(ctx, c.compareBucketSettings); err != nil {
		return c.report, err
	}
	if err := forEach(ctx, objectsAtOnce, slices.Values(pass.Touched.Objects), c.compareObject); err != nil {
		return c.report, err
	}
	err := c.chosen.check(ctx, source, target, &c.report)
	c.sort()
	return c.report, err
}

// compareObject compares an object that the sync pass changed.
func (c *comparison) compareObject(ctx context.Context, object Object) error {
	if !slices.Contains(c.common, object.Bucket) {
		return nil // at most one side has the bucket, and eachCommonBucket has reported that
	}
	theirs, err := c.source.VersionsOf(ctx, object.Bucket, object.Key)
	if err != nil {
		return err
	}
	// If neither side lists the object, the comparison below would find no difference.
	if len(theirs) != object.Versions {
		return fmt.Errorf("object %s/%s has %d versions now, but had %d when EKCO copied it", object.Bucket, object.Key, len(theirs), object.Versions)
	}
	ours, err := c.target.VersionsOf(ctx, object.Bucket, object.Key)
	if err != nil {
		return err
	}
	return c.comparePair(ctx, pair{bucket: object.Bucket, key: object.Key, source: theirs, target: ours, release: func() {}})
}
