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
	// release gives back the room that the versions take. It is called once, when
	// nobody looks at them any more.
	release func()
}

// told reports whether the listings told all that is to be compared.
func (p *pair) told() bool {
	for _, versions := range [][]s3.Version{p.source, p.target} {
		for i := range versions {
			if versions[i].Attributes == nil && !versions[i].DeleteMarker {
				return false
			}
		}
	}
	return true
}

// ahead is how many objects of a listing are kept while earlier ones are looked
// at: about what servers send at once, so that one page is asked for while the
// other is worked on.
const ahead = 1000

// pairs goes through the objects of a bucket on both sides, by key. target is nil
// where the bucket is not there. The versions that are listed and not released take
// so many bytes of each side, or are those of a single object. An error ends it.
func pairs(ctx context.Context, source, target s3.Source, bucket, after string, bytes int) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		var listing parallel.Group
		defer func() {
			stop()
			listing.Wait().Raise()
		}()
		list := func(store s3.Source) <-chan object {
			objects := make(chan object, ahead)
			listing.Go(func() {
				defer close(objects)
				if store != nil {
					group(ctx, store.Versions(ctx, bucket, after), newRoom(bytes), objects)
				}
			})
			return objects
		}
		merge(bucket, list(source), list(target), yield)
	}
}

// merge yields the objects of two lists that are in the same order. The next one
// of a list may have no room before the last one was looked at, so it is not waited
// for until then.
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
		// Out of order, an object on both sides would look missing on one, and be removed.
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

// join makes a pair of two objects, or of the one that comes first.
func join(bucket string, s, t object, order int) pair {
	switch {
	case order < 0:
		return pair{bucket: bucket, key: s.key(), source: s.versions, release: s.release}
	case order > 0:
		return pair{bucket: bucket, key: t.key(), target: t.versions, release: t.release}
	}
	release := func() {
		s.release()
		t.release()
	}
	return pair{bucket: bucket, key: s.key(), source: s.versions, target: t.versions, release: release}
}

// compare is the order of keys, with the end after all of them.
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
