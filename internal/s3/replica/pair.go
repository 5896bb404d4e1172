package replica

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// pair is an object with its versions on both sides, the newest first.
type pair struct {
	bucket, key    string
	source, target []s3.Version
	// fingerprint is the fingerprint of the source's listed versions.
	fingerprint Fingerprint
	// release frees the memory of the versions. The user of the pair must call it once.
	release func()
}

// isComplete reports whether the listings have all attributes that a comparison needs.
func (p *pair) isComplete() bool {
	for _, versions := range [][]s3.Version{p.source, p.target} {
		for i := range versions {
			if versions[i].Attributes == nil && !versions[i].DeleteMarker {
				return false
			}
		}
	}
	return true
}

// readAhead is the number of objects of a listing that are read in advance. It is about one page of a server, so that
// the next page is requested while a page is processed.
const readAhead = 1000

// pairs yields the objects of a bucket on both sides, sorted by key. source or target is nil if it does not have the
// bucket. Versions that are not released yet take at most bytes of memory on each side, or one object of any size.
// An error ends the sequence.
func pairs(ctx context.Context, source, target s3.Source, bucket, after string, bytes int) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var listing parallel.Group
		defer func() {
			stop()
			listing.Wait().Raise()
		}()
		list := func(store s3.Source, sums string) <-chan object {
			objects := make(chan object, readAhead)
			listing.Go(func() {
				defer close(objects)
				if store != nil {
					sendObjects(ctx, sums, store.Versions(ctx, bucket, after), newMemoryLimit(bytes), objects)
				}
			})
			return objects
		}
		merge(bucket, list(source, bucket), list(target, ""), yield)
	}
}

// merge yields the objects of two sorted lists by key. The next object of a list may need the memory of the previous
// object, so merge receives it only after the previous object was yielded.
func merge(bucket string, source, target <-chan object, yield func(pair, error) bool) {
	s, t := <-source, <-target
	for last := ""; ; {
		for _, side := range []object{s, t} {
			if side.err != nil {
				yield(pair{}, side.err)
				return
			}
		}
		order := compareKeys(s.key(), t.key())
		if order == 0 && s.key() == "" {
			return
		}
		p := pairOf(bucket, s, t, order)
		// If a list is not sorted, an object of both sides would look missing on one side, and Pass would remove it.
		if p.key <= last {
			yield(pair{}, fmt.Errorf("bucket %q is listed out of order: %q after %q", bucket, p.key, last))
			return
		}
		last = p.key
		if !yield(p, nil) {
			return
		}
		if order <= 0 {
			s = <-source
		}
		if order >= 0 {
			t = <-target
		}
	}
}

// pairOf returns a pair of both objects if order is 0. Otherwise the pair has only the object with the lower key.
func pairOf(bucket string, s, t object, order int) pair {
	switch {
	case order < 0:
		return pair{bucket: bucket, key: s.key(), source: s.versions, fingerprint: s.fingerprint, release: s.release}
	case order > 0:
		return pair{bucket: bucket, key: t.key(), target: t.versions, release: t.release}
	}
	release := func() {
		s.release()
		t.release()
	}
	return pair{bucket: bucket, key: s.key(), source: s.versions, target: t.versions, fingerprint: s.fingerprint, release: release}
}

// compareKeys orders keys. The empty key, at the end of a list, is the last.
func compareKeys(one, other string) int {
	switch {
	case one == other:
		return 0
	case one == "":
		return 1
	case other == "":
		return -1
	}
	return strings.Compare(one, other)
}
