package replica

import (
	"context"
	"iter"
	"maps"

	"github.com/replicatedhq/ekco/internal/s3"
)

// object is an object with the versions that one side lists, or the error that ends the listing.
type object struct {
	versions []s3.Version
	// fingerprint is the fingerprint of the listed versions. Only objects of the source have one.
	fingerprint Fingerprint
	release     func()
	err         error
}

// key returns the object's key. It is empty at the end of a list.
func (o object) key() string {
	if len(o.versions) == 0 {
		return ""
	}
	return o.versions[0].Key
}

// sendObjects groups listed versions by object, and sends each object when there is memory for it. If bucket is not
// empty, it computes fingerprints.
func sendObjects(ctx context.Context, bucket string, versions iter.Seq2[s3.Version, error], memory *memoryLimit, objects chan<- object) {
	send := func(o object) bool {
		select {
		case objects <- o:
			return true
		case <-ctx.Done():
			return false
		}
	}
	current := objectBuilder{bucket: bucket}
	deliver := func() bool {
		if len(current.versions) == 0 {
			return true
		}
		release, ok := memory.acquire(ctx, current.size)
		return ok && send(object{versions: current.versions, fingerprint: current.fingerprint, release: release})
	}
	for v, err := range versions {
		if err != nil {
			send(object{err: err})
			return
		}
		if len(current.versions) > 0 && current.versions[0].Key != v.Key {
			if !deliver() {
				return
			}
			current = objectBuilder{bucket: bucket}
		}
		current.add(v)
	}
	deliver()
}

const (
	// versionBytes is the approximate size of a version in memory without key and attributes.
	versionBytes = 256
	// maxAttributeBytes limits the memory for the attributes of all versions of an object. Attributes beyond the
	// limit are requested again when they are needed.
	maxAttributeBytes = 2 << 20
)

// objectBuilder collects the versions of an object.
type objectBuilder struct {
	bucket      string
	versions    []s3.Version
	fingerprint Fingerprint
	size        int
	// attributes is the part of size that attributes take.
	attributes int
}

// add adds a version. If values are equal to the previous version's values, both share them in memory.
func (g *objectBuilder) add(v s3.Version) {
	if g.bucket != "" {
		g.fingerprint.with(listedFingerprint(g.bucket, v)) // before attributes are dropped
	}
	g.size += versionBytes
	if len(g.versions) == 0 {
		g.size += len(v.Key)
	} else {
		v.Key = g.versions[0].Key
	}
	if v.Attributes != nil {
		v.Attributes = g.shareAttributes(v.Attributes)
	}
	g.versions = append(g.versions, v)
}

// shareAttributes returns the attributes, or the equal attributes of the previous version, or nil if
// maxAttributeBytes is reached.
func (g *objectBuilder) shareAttributes(a *s3.Attributes) *s3.Attributes {
	if n := len(g.versions); n > 0 && g.versions[n-1].Attributes != nil && equalAttributes(g.versions[n-1].Attributes, a) {
		return g.versions[n-1].Attributes
	}
	size := attributesSize(a)
	if g.attributes+size > maxAttributeBytes {
		return nil
	}
	g.attributes += size
	g.size += size
	return a
}

// equalAttributes reports whether all attributes are the same.
func equalAttributes(a, b *s3.Attributes) bool {
	return maps.Equal(a.Headers, b.Headers) && maps.Equal(a.Tags, b.Tags) && a.Retention.Equal(b.Retention) &&
		a.LegalHold == b.LegalHold && a.Encryption == b.Encryption && a.Expires == b.Expires
}

// attributesSize returns the approximate size of attributes in memory.
func attributesSize(a *s3.Attributes) int {
	size := versionBytes
	for _, values := range []map[string]string{a.Headers, a.Tags} {
		for name, value := range values {
			size += len(name) + len(value) + 64
		}
	}
	return size
}
