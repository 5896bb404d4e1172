package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// OnlyIn returns the names of the buckets and versions that one store has and the other lacks. A version is also
// lacking if the other store has only an older version with the same id, such as the old content of an object without
// versions. If since is not zero, OnlyIn returns only versions that were modified at or after since, and no buckets.
func OnlyIn(ctx context.Context, one, other s3.Source, since time.Time) (Names, error) {
	return namesMissing(ctx, one, other, since, func(p *pair, v s3.Version) (bool, error) { return p.has(v), nil })
}

// WrittenOnlyIn is [OnlyIn] without delete markers, because lifecycle rules also create delete markers.
func WrittenOnlyIn(ctx context.Context, one, other s3.Source, since time.Time) (Names, error) {
	return namesMissing(ctx, one, other, since, func(p *pair, v s3.Version) (bool, error) { return v.DeleteMarker || p.has(v), nil })
}

// Foreign is [OnlyIn] for a target, but it leaves out copies of versions of the source. An older release of EKCO made
// copies without version ids, times and most attributes; the next sync pass corrects them. A version with more
// attributes than the source's version is not a copy.
func Foreign(ctx context.Context, target, source s3.Source, since time.Time) (Names, error) {
	return namesMissing(ctx, target, source, since, func(p *pair, v s3.Version) (bool, error) {
		if p.has(v) {
			return true, nil
		}
		if is, err := isCopyOf(ctx, target, source, p.bucket, p.target, v); err != nil || !is {
			return false, err
		}
		i := slices.IndexFunc(p.target, func(of s3.Version) bool { return of.ID == v.ID && of.ETag == v.ETag && of.Size == v.Size })
		if i < 0 {
			return true, nil
		}
		of := p.target[i]
		err := errors.Join(loadAttributes(ctx, source, p.bucket, &of), loadAttributes(ctx, target, p.bucket, &v))
		return err == nil && isSubset(v.Attributes, of.Attributes), err
	})
}

// namesMissing returns the names of the buckets and versions that only one has. The function has reports whether
// other has a version.
func namesMissing(ctx context.Context, one, other s3.Source, since time.Time, has func(*pair, s3.Version) (bool, error)) (Names, error) {
	var found Names
	ours, theirs, err := listBuckets(ctx, one, other)
	if err != nil {
		return found, err
	}
	for _, bucket := range ours {
		there := other
		if !slices.Contains(theirs, bucket) {
			if there = nil; since.IsZero() {
				found.add("bucket " + bucket)
			}
		}
		if err := namesMissingIn(ctx, bucket, one, there, since, has, &found); err != nil {
			return found, err
		}
	}
	return found, nil
}

func namesMissingIn(ctx context.Context, bucket string, one, other s3.Source, since time.Time, has func(*pair, s3.Version) (bool, error), found *Names) error {
	for p, err := range pairs(ctx, one, other, bucket, "", maxListedBytes) {
		if err != nil {
			return err
		}
		for _, v := range p.source {
			if v.Modified.Before(since) {
				continue
			}
			is, err := has(&p, v)
			if err != nil {
				return err
			}
			if !is {
				found.add(Item{bucket, v}.String())
			}
		}
		p.release()
	}
	return nil
}

// has reports whether the target has the version, or a newer version with the same id.
func (p *pair) has(v s3.Version) bool {
	at := v.Modified.Truncate(time.Millisecond)
	return slices.ContainsFunc(p.target, func(old s3.Version) bool {
		if old.ID != v.ID {
			return false
		}
		was := old.Modified.Truncate(time.Millisecond)
		return at.Before(was) || at.Equal(was) && old.ETag == v.ETag && old.DeleteMarker == v.DeleteMarker
	})
}

// isCopyOf reports whether v, a version on store one, is a copy, made without version ids, of one of the originals on
// store other. A copy has the content of its original. If the original has an id of its own, the copy must not have
// more attributes. An empty copy must then have the same attributes, because all empty objects have the same content.
func isCopyOf(ctx context.Context, one, other s3.Source, bucket string, originals []s3.Version, v s3.Version) (bool, error) {
	if v.ID != s3.NullVersion || v.DeleteMarker {
		return false, nil
	}
	for _, of := range originals {
		if of.DeleteMarker || of.Size != v.Size || of.ETag != v.ETag {
			continue
		}
		if of.ID == v.ID {
			return true, nil
		}
		err := errors.Join(loadAttributes(ctx, one, bucket, &v), loadAttributes(ctx, other, bucket, &of))
		if errors.Is(err, s3.ErrGone) {
			continue
		}
		if err != nil {
			return false, err
		}
		if equalAttributes(of.Attributes, v.Attributes) || v.Size > 0 && isSubset(v.Attributes, of.Attributes) {
			return true, nil
		}
	}
	return false, nil
}

// isSubset reports whether all has each attribute of some that a client can set.
func isSubset(some, all *s3.Attributes) bool {
	has := func(some, all map[string]string) bool {
		for name, value := range some {
			if got, is := all[name]; !is || got != value {
				return false
			}
		}
		return true
	}
	return has(some.Headers, all.Headers) && has(some.Tags, all.Tags) &&
		(some.Retention == nil || some.Retention.Equal(all.Retention)) && (!some.LegalHold || all.LegalHold)
}
