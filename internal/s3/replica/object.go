package replica

import (
	"context"
	"iter"
	"maps"

	"github.com/replicatedhq/ekco/internal/s3"
)

// object is an object as one side lists it, or the error that ends the listing.
type object struct {
	versions []s3.Version
	// fingerprint is that of the versions as they were listed, on the source.
	fingerprint Fingerprint
	release     func()
	err         error
}

// key is empty at the end of a list.
func (o object) key() string {
	if len(o.versions) == 0 {
		return ""
	}
	return o.versions[0].Key
}

// group sends the objects of a list of versions, each when there is space for it. With the name of a bucket it computes
// their fingerprints.
func group(ctx context.Context, bucket string, versions iter.Seq2[s3.Version, error], room *room, objects chan<- object) {
	send := func(o object) bool {
		select {
		case objects <- o:
			return true
		case <-ctx.Done():
			return false
		}
	}
	current := gathered{bucket: bucket}
	deliver := func() bool {
		if len(current.versions) == 0 {
			return true
		}
		release, ok := room.take(ctx, current.size)
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
			current = gathered{bucket: bucket}
		}
		current.add(v)
	}
	deliver()
}

const (
	// versionBytes is about how many bytes a version takes without key and attributes.
	versionBytes = 256
	// maxAttributeBytes is how many bytes the attributes of all versions of an object may take. The attributes
	// after that are requested again when they are needed.
	maxAttributeBytes = 2 << 20
)

// gathered are the versions of an object, which can be many.
type gathered struct {
	bucket      string
	versions    []s3.Version
	fingerprint Fingerprint
	size        int
	// attributes is how many bytes of the size attributes take.
	attributes int
}

// add adds a version. Values equal to those of the version before are stored once.
func (g *gathered) add(v s3.Version) {
	if g.bucket != "" {
		g.fingerprint.with(listedAs(g.bucket, v)) // with all attributes
	}
	g.size += versionBytes
	if len(g.versions) == 0 {
		g.size += len(v.Key)
	} else {
		v.Key = g.versions[0].Key
	}
	if v.Attributes != nil {
		v.Attributes = g.share(v.Attributes)
	}
	g.versions = append(g.versions, v)
}

// share returns the attributes, shared with the version before if equal, or nil if there is no
// space for them.
func (g *gathered) share(a *s3.Attributes) *s3.Attributes {
	if n := len(g.versions); n > 0 && g.versions[n-1].Attributes != nil && equal(g.versions[n-1].Attributes, a) {
		return g.versions[n-1].Attributes
	}
	size := sizeOf(a)
	if g.attributes+size > maxAttributeBytes {
		return nil
	}
	g.attributes += size
	g.size += size
	return a
}

// equal reports whether all attributes are the same.
func equal(a, b *s3.Attributes) bool {
	return maps.Equal(a.Headers, b.Headers) && maps.Equal(a.Tags, b.Tags) && a.Retention.Equal(b.Retention) &&
		a.LegalHold == b.LegalHold && a.Encryption == b.Encryption && a.Expires == b.Expires
}

// sizeOf is about how many bytes attributes take.
func sizeOf(a *s3.Attributes) int {
	size := versionBytes
	for _, values := range []map[string]string{a.Headers, a.Tags} {
		for name, value := range values {
			size += len(name) + len(value) + 64
		}
	}
	return size
}
