package replica

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// pair is an object on both sides, each with its versions, the newest first.
type pair struct {
	bucket, key    string
	source, target []s3.Version
	// fingerprint is that of the source's versions, as they were listed.
	fingerprint Fingerprint
	// release frees the memory of the versions. It is called once, when they are no longer used.
	release func()
}

// isComplete reports whether the listings have everything to compare.
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

// readAhead is how many objects of a listing are read in advance: about one page of a server, so that
// the next page is requested while one is processed.
const readAhead = 1000

// pairs goes through the objects of a bucket on both sides, by key. target is nil if it does not
// have the bucket. Versions that are listed and not released take at most that many bytes on each
// side, unless they are those of a single object. An error ends it.
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
					group(ctx, sums, store.Versions(ctx, bucket, after), newRoom(bytes), objects)
				}
			})
			return objects
		}
		merge(bucket, list(source, bucket), list(target, ""), yield)
	}
}

// merge yields the objects of two lists in the same order. The next object of a list may wait for
// memory until the last one is released, so merge does not request it earlier.
func merge(bucket string, source, target <-chan object, yield func(pair, error) bool) {
	s, t := <-source, <-target
	for last := ""; ; {
		for _, side := range []object{s, t} {
			if side.err != nil {
				yield(pair{}, side.err)
				return
			}
		}
		order := compare(s.key(), t.key())
		if order == 0 && s.key() == "" {
			return
		}
		p := join(bucket, s, t, order)
		// In another order, an object of both sides would look missing on one, and be removed.
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

// join makes a pair of two objects, or of the first one.
func join(bucket string, s, t object, order int) pair {
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

// compare orders keys; the end of a list comes last.
func compare(one, other string) int {
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
