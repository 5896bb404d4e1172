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
	// Missing: only the source has the version.
	Missing Aspect = "missing"
	// Surplus: only the target has the version.
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
	// Name is the name of the version, from [Item.String].
	Name    string
	Aspects []Aspect
	// State is the digest of the version on the source, or on the target for a surplus version. A different State
	// means that the version was changed.
	State State
}

// Fingerprint is a digest of the listing of a store: buckets, and versions with their listed attributes. Stores with
// the same listing have the same fingerprint. It is not a cryptographic digest: a client could construct versions
// with a given fingerprint.
type Fingerprint struct {
	sum State
	// Incomplete is set if a version is listed without its attributes, which could change unnoticed.
	Incomplete bool
}

// String returns hexadecimal digits.
func (f Fingerprint) String() string { return fmt.Sprintf("%x", f.sum[:]) }

// with combines the fingerprint with another one. The order of the calls does not matter.
func (f *Fingerprint) with(other Fingerprint) {
	for i := range f.sum {
		f.sum[i] ^= other.sum[i]
	}
	f.Incomplete = f.Incomplete || other.Incomplete
}

// listedFingerprint returns the fingerprint of one version. If v has no key, it is the fingerprint of an empty bucket.
func listedFingerprint(bucket string, v s3.Version) Fingerprint {
	state := fingerprint(v)
	sum := sha256.Sum256(slices.Concat([]byte(bucket), []byte{0}, []byte(v.Key), []byte{0}, state[:])) // no name has a NUL
	return Fingerprint{State(sum[:len(State{})]), v.Key != "" && !v.DeleteMarker && v.Attributes == nil}
}

func differenceOf(bucket string, v s3.Version, aspects []Aspect) Difference {
	return Difference{bucket, v.Key, v.ID, Item{bucket, v}.String(), aspects, fingerprint(v)}
}

func containsOnly(aspects []Aspect, allowed ...Aspect) bool {
	return !slices.ContainsFunc(aspects, func(a Aspect) bool { return !slices.Contains(allowed, a) })
}

// State is a digest of a version.
type State [16]byte

// fingerprint returns the digest of a version.
func fingerprint(v s3.Version) State {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %t %d %q %d", v.ID, v.DeleteMarker, v.Size, v.ETag, v.Modified.UnixMilli())
	if a := v.Attributes; a != nil { // fmt sorts maps by key
		fmt.Fprintf(hash, "%q %q %t %q", a.Headers, a.Tags, a.LegalHold, a.Encryption)
		if a.Retention != nil {
			fmt.Fprintf(hash, "%q %d", a.Retention.Mode, a.Retention.Until.Unix())
		}
	}
	return State(hash.Sum(nil)[:len(State{})])
}

// change is a version that must be stored or changed on the target.
type change struct {
	version s3.Version
	// old is the version with the same id on the target, or nil.
	old     *s3.Version
	aspects []Aspect
}

// onlyAttributesDiffer reports whether attributes differ but the content does not.
func (c *change) onlyAttributesDiffer() bool {
	return containsOnly(c.aspects, Metadata, Tags, Lock, Modified) && !containsOnly(c.aspects, Modified)
}

// canChangeInPlace reports whether the target can be corrected without storing the version again. An expired
// retention can only be stored together with its version.
func (c *change) canChangeInPlace() bool {
	if !containsOnly(c.aspects, Tags, Lock) {
		return false
	}
	retention := c.version.Attributes.Retention
	return !slices.Contains(c.aspects, Lock) || retention == nil || retention.Until.After(time.Now())
}

// differences are the changes that make one object on the target equal to the source.
type differences struct {
	// changes are the versions to store, the oldest first. surplus are the versions to remove.
	changes []change
	surplus []s3.Version
	// gone counts versions that disappeared after they were listed. The next sync pass handles them.
	gone int
}

func (d *differences) isEmpty() bool { return len(d.changes)+len(d.surplus)+d.gone == 0 }

// findDifferences compares an object on both sides.
func findDifferences(ctx context.Context, source, target s3.Source, p pair) (d differences, err error) {
	there := make(map[string]*s3.Version, len(p.target))
	for i := range p.target {
		there[p.target[i].ID] = &p.target[i]
	}
	for _, v := range oldestFirst(p.source) {
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

// oldestFirst returns the versions, the oldest first. It makes equal times different: a listing has only
// milliseconds, and the target would sort versions of the same millisecond at random.
func oldestFirst(newestFirst []s3.Version) []s3.Version {
	versions := make([]s3.Version, len(newestFirst))
	for i := range newestFirst {
		v := newestFirst[len(newestFirst)-1-i]
		if i > 0 && versions[i-1].Modified.Truncate(time.Millisecond).Equal(v.Modified) {
			v.Modified = versions[i-1].Modified.Add(time.Microsecond)
		}
		versions[i] = v
	}
	return versions
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
	if err := loadAttributes(ctx, source, bucket, v); err != nil {
		return nil, err
	}
	if err := loadAttributes(ctx, target, bucket, old); err != nil {
		return nil, err
	}
	a, b := v.Attributes, old.Attributes
	check(maps.Equal(a.Headers, b.Headers) && a.Encryption == b.Encryption, Metadata)
	check(maps.Equal(a.Tags, b.Tags), Tags)
	check(a.Retention.Equal(b.Retention) && a.LegalHold == b.LegalHold, Lock)
	return differ, nil
}

// loadAttributes reads the attributes of a version from the store if they are not known.
func loadAttributes(ctx context.Context, store s3.Source, bucket string, v *s3.Version) error {
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
