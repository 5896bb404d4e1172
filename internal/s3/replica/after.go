package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/internal/s3"
)

// listedPerRequest is how many versions a store lists in about the time in which it lists a single object
// alone.
const listedPerRequest = 50

// CompareAfter is [Compare] right after a sync pass, between stores that no other client has
// changed since the pass started. What the pass left unchanged was equal. So CompareAfter compares
// only what the pass changed, and the buckets with their settings. If the pass changed so much that
// comparing everything is as fast, it compares everything. The report counts what was compared.
func CompareAfter(ctx context.Context, source, target s3.Source, pass Result, options CompareOptions) (Report, error) {
	if touched := pass.Touched; touched.Count > len(touched.Objects) || int64(touched.Count)*listedPerRequest > pass.Seen {
		return Compare(ctx, source, target, options)
	}
	c := newComparison(source, target, options)
	if err := c.buckets(ctx, c.settings); err != nil {
		return c.report, err
	}
	if err := eachOf(ctx, objectsAtOnce, slices.Values(pass.Touched.Objects), c.again); err != nil {
		return c.report, err
	}
	err := c.chosen.check(ctx, source, target, &c.report)
	c.sort()
	return c.report, err
}

// again compares an object that a pass changed.
func (c *comparison) again(ctx context.Context, object Object) error {
	if !slices.Contains(c.common, object.Bucket) {
		return nil // it is on one side only, which was reported before, or on none
	}
	theirs, err := c.source.VersionsOf(ctx, object.Bucket, object.Key)
	if err != nil {
		return err
	}
	// An object that neither side lists would look equal, although nothing was compared.
	if len(theirs) != object.Versions {
		return fmt.Errorf("object %s/%s has %d versions, and had %d when it was copied", object.Bucket, object.Key, len(theirs), object.Versions)
	}
	ours, err := c.target.VersionsOf(ctx, object.Bucket, object.Key)
	if err != nil {
		return err
	}
	return c.pair(ctx, pair{bucket: object.Bucket, key: object.Key, source: theirs, target: ours, release: func() {}})
}
