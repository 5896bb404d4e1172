package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Alone names the buckets and versions that one store has and the other does not. A version counts,
// too, if the other has an older one with its id, for example of an object without versions that
// was written again. Versions that were last modified before since do not count, nor do buckets
// without other versions then. A zero since counts everything.
func Alone(ctx context.Context, one, other s3.Source, since time.Time) (Names, error) {
	return namesMissing(ctx, one, other, since, func(p *pair, v s3.Version) (bool, error) { return p.has(v), nil })
}

// Written is [Alone] without delete markers, which lifecycle rules also create.
func Written(ctx context.Context, one, other s3.Source, since time.Time) (Names, error) {
	return namesMissing(ctx, one, other, since, func(p *pair, v s3.Version) (bool, error) { return v.DeleteMarker || p.has(v), nil })
}

// Foreign is [Alone] of a target, without copies of what the source has, whenever they were made:
// an EKCO before this one copied without versions, times and most attributes, and a sync pass
// corrects that. A version with more attributes than the one of the source is not a copy.
func Foreign(ctx context.Context, target, source s3.Source, since time.Time) (Names, error) {
	return namesMissing(ctx, target, source, since, func(p *pair, v s3.Version) (bool, error) {
		if p.has(v) {
			return true, nil
		}
		if is, err := copyIn(ctx, target, source, p.bucket, p.target, v); err != nil || !is {
			return false, err
		}
		i := slices.IndexFunc(p.target, func(of s3.Version) bool { return of.ID == v.ID && of.ETag == v.ETag && of.Size == v.Size })
		if i < 0 {
			return true, nil
		}
		of := p.target[i]
		err := errors.Join(describe(ctx, source, p.bucket, &of), describe(ctx, target, p.bucket, &v))
		return err == nil && within(v.Attributes, of.Attributes), err
	})
}

// namesMissing names what one store has and the other does not. Function has decides whether the other
// has a version.
func namesMissing(ctx context.Context, one, other s3.Source, since time.Time, has func(*pair, s3.Version) (bool, error)) (Names, error) {
	var found Names
	ours, theirs, err := both(ctx, one, other)
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

// has reports whether the target has that version, or a newer one with its id.
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

// copyIn reports whether v, a version on one store without its own id, is a copy of one of those on
// the other. A copy without versions is of the newest version, whatever its id: then it must not
// have more attributes. If it is empty it must have the same ones, because all empty objects have
// the same content.
func copyIn(ctx context.Context, one, other s3.Source, bucket string, those []s3.Version, v s3.Version) (bool, error) {
	if v.ID != s3.NullVersion || v.DeleteMarker {
		return false, nil
	}
	for _, of := range those {
		if of.DeleteMarker || of.Size != v.Size || of.ETag != v.ETag {
			continue
		}
		if of.ID == v.ID {
			return true, nil
		}
		err := errors.Join(describe(ctx, one, bucket, &v), describe(ctx, other, bucket, &of))
		if errors.Is(err, s3.ErrGone) {
			continue
		}
		if err != nil {
			return false, err
		}
		if equal(of.Attributes, v.Attributes) || v.Size > 0 && within(v.Attributes, of.Attributes) {
			return true, nil
		}
	}
	return false, nil
}

// within reports whether those have all attributes that clients gave the others.
func within(others, those *s3.Attributes) bool {
	has := func(others, those map[string]string) bool {
		for name, value := range others {
			if got, is := those[name]; !is || got != value {
				return false
			}
		}
		return true
	}
	return has(others.Headers, those.Headers) && has(others.Tags, those.Tags) &&
		(others.Retention == nil || others.Retention.Equal(those.Retention)) && (!others.LegalHold || those.LegalHold)
}
