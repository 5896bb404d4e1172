package replica

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Removed reports whether it is known that a version was removed from the source on purpose; without a key it is
// about the bucket.
type Removed func(bucket string, v s3.Version) bool

// Kept are versions that stay on the target though the source does not have them, or has an older one of the same
// id; without a key it is the bucket.
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

// String names exactly that version: one without an id of its own by its time, too.
func (i Item) String() string {
	switch {
	case i.Key == "":
		return "bucket " + i.Bucket
	case i.ID == s3.NullVersion:
		return "object " + i.Bucket + "/" + i.Key + " (" + i.ID + ", " + i.Modified.UTC().Format("2006-01-02T15:04:05.000Z07:00") + ")"
	}
	return "object " + i.Bucket + "/" + i.Key + " (" + i.ID + ")"
}

// keeps reports whether a version stays that the source lacks. Nothing is lost of a mere copy of what that has, nor of
// delete markers that hide nothing, as lifecycles remove them.
func (r Removed) keeps(p *pair, v s3.Version) bool {
	hides := len(p.source) > 0 || slices.ContainsFunc(p.target, func(v s3.Version) bool { return !v.DeleteMarker })
	return r != nil && hides && !copyIn(p.source, v) && !r(p.bucket, v)
}

// older reports whether a change replaces other content by that of an older version, which no client does.
func (c *change) older() bool {
	v, old := c.version, c.old
	return old != nil && v.Modified.Truncate(time.Millisecond).Before(old.Modified.Truncate(time.Millisecond)) &&
		(v.ETag != old.ETag || v.Size != old.Size || v.DeleteMarker != old.DeleteMarker)
}

// keep takes out of what is to be done what stays on the target, and returns that.
func (d *differences) keep(p *pair, known Removed) (kept []Item) {
	d.surplus = slices.DeleteFunc(d.surplus, func(v s3.Version) bool {
		keeps := known.keeps(p, v)
		if keeps {
			kept = append(kept, Item{p.bucket, v})
		}
		return keeps
	})
	d.changes = slices.DeleteFunc(d.changes, func(c change) bool {
		keeps := c.older() && known.keeps(p, *c.old)
		if keeps {
			kept = append(kept, Item{p.bucket, *c.old})
		}
		return keeps
	})
	return kept
}
