package replica

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// pair is an object on both sides, each with its versions, the newest first. The
// memory it takes grows with the versions of a single object.
type pair struct {
	bucket, key    string
	source, target []s3.Version
}

// ahead is how many objects of a listing are kept while earlier ones are looked
// at: about what servers send at once, so that one page is asked for while the
// other is worked on.
const ahead = 1000

// object is an object as one side lists it, or why there is no more.
type object struct {
	versions []s3.Version
	err      error
}

// key is empty at the end of a list.
func (o object) key() string {
	if len(o.versions) == 0 {
		return ""
	}
	return o.versions[0].Key
}

// pairs goes through the objects of a bucket on both sides, by key. target is nil
// where the bucket is not there. An error ends it.
func pairs(ctx context.Context, source, target s3.Source, bucket, after string) iter.Seq2[pair, error] {
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
					group(ctx, store.Versions(ctx, bucket, after), objects)
				}
			})
			return objects
		}
		merge(bucket, list(source), list(target), yield)
	}
}

// merge yields the objects of two lists that are in the same order.
func merge(bucket string, source, target <-chan object, yield func(pair, error) bool) {
	s, t := <-source, <-target
	for last := ""; ; {
		for _, side := range []object{s, t} {
			if side.err != nil {
				yield(pair{}, side.err)
				return
			}
		}
		p := pair{bucket: bucket}
		switch order := compare(s.key(), t.key()); {
		case s.key() == "" && t.key() == "":
			return
		case order < 0:
			p.key, p.source, s = s.key(), s.versions, <-source
		case order > 0:
			p.key, p.target, t = t.key(), t.versions, <-target
		default:
			p.key, p.source, p.target = s.key(), s.versions, t.versions
			s, t = <-source, <-target
		}
		// Out of order, an object on both sides would look missing on one, and be removed.
		if p.key <= last {
			yield(pair{}, fmt.Errorf("bucket %q is listed out of order: %q after %q", bucket, p.key, last))
			return
		}
		last = p.key
		if !yield(p, nil) {
			return
		}
	}
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

// group sends the objects of a list of versions.
func group(ctx context.Context, versions iter.Seq2[s3.Version, error], objects chan<- object) {
	send := func(o object) bool {
		select {
		case objects <- o:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var current []s3.Version
	for v, err := range versions {
		if err != nil {
			send(object{err: err})
			return
		}
		if len(current) > 0 && current[0].Key != v.Key {
			if !send(object{versions: current}) {
				return
			}
			current = nil
		}
		current = append(current, v)
	}
	if len(current) > 0 {
		send(object{versions: current})
	}
}
