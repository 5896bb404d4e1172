package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Removed reports whether EKCO knows that a version was removed from the source on purpose. If v has no key, it
// reports this about the bucket.
type Removed func(bucket string, v s3.Version) bool

// Kept are versions that stay on the target although the source does not have them, or has only an older version with
// the same id. An item without a key is a bucket.
type Kept struct {
	// Count is the number of items. Items has at most [MaxNames] of them.
	Count int
	Items []Item
}

// Item is a version in a bucket.
type Item struct {
	Bucket string
	s3.Version
}

// String returns a unique name of the version. The name includes the time if the version has no id of its own.
func (i Item) String() string {
	switch {
	case i.Key == "":
		return "bucket " + i.Bucket
	case i.ID == s3.NullVersion:
		return "object " + i.Bucket + "/" + i.Key + " (" + i.ID + ", " + i.Modified.UTC().Format("2006-01-02T15:04:05.000Z07:00") + ")"
	}
	return "object " + i.Bucket + "/" + i.Key + " (" + i.ID + ")"
}

// mustStay reports whether a version stays on the target although the source does not have it. A copy of a source's
// version need not stay. Nor does a delete marker without other versions, because lifecycle rules remove such markers.
func (r Removed) mustStay(ctx context.Context, source, target s3.Source, p *pair, v s3.Version) (bool, error) {
	hides := len(p.source) > 0 || slices.ContainsFunc(p.target, func(v s3.Version) bool { return !v.DeleteMarker })
	if r == nil || !hides || r(p.bucket, v) {
		return false, nil
	}
	is, err := isCopyOf(ctx, target, source, p.bucket, p.source, v)
	return !is, err
}

// replacesNewer reports whether a change replaces newer content by older content, which a client never does.
func (c *change) replacesNewer() bool {
	v, old := c.version, c.old
	return old != nil && v.Modified.Truncate(time.Millisecond).Before(old.Modified.Truncate(time.Millisecond)) &&
		(v.ETag != old.ETag || v.Size != old.Size || v.DeleteMarker != old.DeleteMarker)
}

// keep drops the deletions and replacements of versions that must stay, and returns these versions.
func (d *differences) keep(ctx context.Context, source, target s3.Source, p *pair, known Removed) (kept []Item, err error) {
	stays := func(v s3.Version) bool {
		is, failed := known.mustStay(ctx, source, target, p, v)
		if err = errors.Join(err, failed); is {
			kept = append(kept, Item{p.bucket, v})
		}
		return is
	}
	d.surplus = slices.DeleteFunc(d.surplus, stays)
	d.changes = slices.DeleteFunc(d.changes, func(c change) bool { return c.replacesNewer() && stays(*c.old) })
	return kept, err
}
