package replica

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// An Aspect is a property in which a version can differ.
type Aspect string

// The properties that are compared.
const (
	// Missing: only the source has it.
	Missing Aspect = "missing"
	// Surplus: only the target has it.
	Surplus  Aspect = "surplus"
	Kind     Aspect = "delete marker"
	Size     Aspect = "size"
	ETag     Aspect = "etag"
	Modified Aspect = "time of modification"
	Metadata Aspect = "metadata"
	Tags     Aspect = "tags"
	Lock     Aspect = "retention or legal hold"
	Content  Aspect = "content"
)

// Difference is a version that differs between the sides.
type Difference struct {
	Bucket, Key, Version string
	// Name is the String of [Item].
	Name    string
	Aspects []Aspect
	// State is a digest of the version on the source, for a surplus version on the target. If it
	// changes, the version was changed.
	State State
}

// Fingerprint is a digest of everything that a store lists: buckets, and versions with their listed
// attributes. Stores that list the same have the same one. It is not safe against a client that
// searches for versions with a given fingerprint.
type Fingerprint struct {
	sum State
	// incomplete is set if a version is listed without its attributes, which may then change unnoticed.
	incomplete bool
}

// String returns hexadecimal digits, or "" if the fingerprint does not have everything.
func (f Fingerprint) String() string {
	if f.incomplete {
		return ""
	}
	return fmt.Sprintf("%x", f.sum[:])
}

// with adds another fingerprint. The order does not matter.
func (f *Fingerprint) with(other Fingerprint) {
	for i := range f.sum {
		f.sum[i] ^= other.sum[i]
	}
	f.incomplete = f.incomplete || other.incomplete
}

// listedAs returns the fingerprint of one version, or without a key of an empty bucket.
func listedAs(bucket string, v s3.Version) Fingerprint {
	state := fingerprint(v)
	sum := sha256.Sum256(slices.Concat([]byte(bucket), []byte{0}, []byte(v.Key), []byte{0}, state[:])) // no name has a NUL
	return Fingerprint{State(sum[:len(State{})]), v.Key != "" && !v.DeleteMarker && v.Attributes == nil}
}

func differenceOf(bucket string, v s3.Version, aspects []Aspect) Difference {
	return Difference{bucket, v.Key, v.ID, Item{bucket, v}.String(), aspects, fingerprint(v)}
}

func onlyOf(aspects []Aspect, allowed ...Aspect) bool {
	return !slices.ContainsFunc(aspects, func(a Aspect) bool { return !slices.Contains(allowed, a) })
}

// State is a digest of a version.
type State [16]byte

// fingerprint returns the digest of a version.
func fingerprint(v s3.Version) State {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %t %d %q %d", v.ID, v.DeleteMarker, v.Size, v.ETag, v.Modified.UnixMilli())
	if a := v.Attributes; a != nil { // with maps in the order of their keys
		fmt.Fprintf(hash, "%q %q %t %q", a.Headers, a.Tags, a.LegalHold, a.Encryption)
		if a.Retention != nil {
			fmt.Fprintf(hash, "%q %d", a.Retention.Mode, a.Retention.Until.Unix())
		}
	}
	return State(hash.Sum(nil)[:len(State{})])
}

// change is a change of one version on the target.
type change struct {
	version s3.Version
	// old is the version on the target, nil if there is none.
	old     *s3.Version
	aspects []Aspect
}

// besides reports whether attributes differ and the content does not.
func (c *change) besides() bool {
	return onlyOf(c.aspects, Metadata, Tags, Lock, Modified) && !onlyOf(c.aspects, Modified)
}

// annotation reports whether only properties differ that can be changed in place. A retention that
// is over can only be stored with its version.
func (c *change) annotation() bool {
	if !onlyOf(c.aspects, Tags, Lock) {
		return false
	}
	retention := c.version.Attributes.Retention
	return !slices.Contains(c.aspects, Lock) || retention == nil || retention.Until.After(time.Now())
}

// differences are the changes of one object on the target.
type differences struct {
	// changes are versions to store, the oldest first, surplus versions to remove.
	changes []change
	surplus []s3.Version
	// gone counts versions that were listed and then disappeared. The next sync pass handles them.
	gone int
}

func (d *differences) none() bool { return len(d.changes)+len(d.surplus)+d.gone == 0 }

// differ compares an object on both sides.
func differ(ctx context.Context, source, target s3.Source, p pair) (d differences, err error) {
	there := make(map[string]*s3.Version, len(p.target))
	for i := range p.target {
		there[p.target[i].ID] = &p.target[i]
	}
	for _, v := range ordered(p.source) {
		listed := there[v.ID]
		delete(there, v.ID)
		if listed == nil {
			d.changes = append(d.changes, change{version: v, aspects: []Aspect{Missing}})
			continue
		}
		old := *listed // a copy, so that its attributes do not stay in memory
		aspects, err := aspects(ctx, source, target, p.bucket, &v, &old)
		if errors.Is(err, s3.ErrGone) {
			d.gone++
			continue
		}
		if err != nil {
			return differences{}, err
		}
		if len(aspects) > 0 {
			d.changes = append(d.changes, change{version: v, old: &old, aspects: aspects})
		}
	}
	for _, v := range p.target {
		if there[v.ID] != nil {
			d.surplus = append(d.surplus, v)
		}
	}
	return d, nil
}

// ordered returns versions, the oldest first, with times that keep that order: a listing has
// milliseconds, and the target would sort versions of the same millisecond at random.
func ordered(newestFirst []s3.Version) []s3.Version {
	oldestFirst := make([]s3.Version, len(newestFirst))
	for i := range newestFirst {
		v := newestFirst[len(newestFirst)-1-i]
		if i > 0 && oldestFirst[i-1].Modified.Truncate(time.Millisecond).Equal(v.Modified) {
			v.Modified = oldestFirst[i-1].Modified.Add(time.Microsecond)
		}
		oldestFirst[i] = v
	}
	return oldestFirst
}

// aspects returns the properties in which two versions with the same id differ.
func aspects(ctx context.Context, source, target s3.Source, bucket string, v, old *s3.Version) ([]Aspect, error) {
	if v.DeleteMarker != old.DeleteMarker {
		return []Aspect{Kind}, nil
	}
	var differ []Aspect
	check := func(same bool, aspect Aspect) {
		if !same {
			differ = append(differ, aspect)
		}
	}
	check(v.Modified.Truncate(time.Millisecond).Equal(old.Modified.Truncate(time.Millisecond)), Modified)
	if v.DeleteMarker {
		return differ, nil
	}
	check(v.Size == old.Size, Size)
	check(v.ETag == old.ETag, ETag)
	if err := describe(ctx, source, bucket, v); err != nil {
		return nil, err
	}
	if err := describe(ctx, target, bucket, old); err != nil {
		return nil, err
	}
	a, b := v.Attributes, old.Attributes
	check(maps.Equal(a.Headers, b.Headers) && a.Encryption == b.Encryption, Metadata)
	check(maps.Equal(a.Tags, b.Tags), Tags)
	check(a.Retention.Equal(b.Retention) && a.LegalHold == b.LegalHold, Lock)
	return differ, nil
}

// describe loads the attributes of a version if they are not known.
func describe(ctx context.Context, store s3.Source, bucket string, v *s3.Version) error {
	if v.Attributes != nil || v.DeleteMarker {
		return nil
	}
	attributes, err := store.Describe(ctx, bucket, *v)
	if err != nil {
		return err
	}
	v.Attributes = &attributes
	return nil
}
