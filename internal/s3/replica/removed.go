package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Removed reports whether a version is known to have been removed from the source on purpose.
// Without a key it is about the bucket.
type Removed func(bucket string, v s3.Version) bool

// Kept are versions that stay on the target although the source does not have them, or has an older one with the same
// id. An item without a key is a bucket.
type Kept struct {
	// Count is how many there are, Items at most [MaxNames] of them.
	Count int
	Items []Item
}

// Item is a version in a bucket.
type Item struct {
	Bucket string
	s3.Version
}

// String names exactly that version. It includes the time if the version has no id of its own.
func (i Item) String() string {
	switch {
	case i.Key == "":
		return "bucket " + i.Bucket
	case i.ID == s3.NullVersion:
		return "object " + i.Bucket + "/" + i.Key + " (" + i.ID + ", " + i.Modified.UTC().Format("2006-01-02T15:04:05.000Z07:00") + ")"
	}
	return "object " + i.Bucket + "/" + i.Key + " (" + i.ID + ")"
}

// keeps reports whether a version stays although the source does not have it. A copy of what the
// source has may go, and so may a delete marker that hides nothing: lifecycle rules remove those.
func (r Removed) keeps(ctx context.Context, source, target s3.Source, p *pair, v s3.Version) (bool, error) {
	hides := len(p.source) > 0 || slices.ContainsFunc(p.target, func(v s3.Version) bool { return !v.DeleteMarker })
	if r == nil || !hides || r(p.bucket, v) {
		return false, nil
	}
	is, err := copyIn(ctx, target, source, p.bucket, p.source, v)
	return !is, err
}

// older reports whether a change replaces newer content by older content, which no client does.
func (c *change) older() bool {
	v, old := c.version, c.old
	return old != nil && v.Modified.Truncate(time.Millisecond).Before(old.Modified.Truncate(time.Millisecond)) &&
		(v.ETag != old.ETag || v.Size != old.Size || v.DeleteMarker != old.DeleteMarker)
}

// keep drops the deletions and replacements that must not happen, and returns the versions that therefore stay.
func (d *differences) keep(ctx context.Context, source, target s3.Source, p *pair, known Removed) (kept []Item, err error) {
	keeps := func(v s3.Version) bool {
		is, failed := known.keeps(ctx, source, target, p, v)
		if err = errors.Join(err, failed); is {
			kept = append(kept, Item{p.bucket, v})
		}
		return is
	}
	d.surplus = slices.DeleteFunc(d.surplus, keeps)
	d.changes = slices.DeleteFunc(d.changes, func(c change) bool { return c.older() && keeps(*c.old) })
	return kept, err
}
