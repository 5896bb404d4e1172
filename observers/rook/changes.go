package rook

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Changes triggers reads of the custom resources and of Ceph after EKCO has changed them. The zero Changes is ready for
// use. It is safe for concurrent use.
type Changes struct {
	observers.Nudge
	made atomic.Uint64
}

// Look triggers the reads.
func (c *Changes) Look() {
	c.made.Add(1)
	c.Nudge.Look()
}

// count returns the number of changes that EKCO has made.
func (c *Changes) count() uint64 {
	if c == nil {
		return 0
	}
	return c.made.Load()
}

// steady returns a get that keeps the last generation if nothing else has changed, because in the CRDs of Rook 1.0 the
// generation also counts changes of the status. After EKCO's own change it returns the present generation in any case:
// if another client undoes that change at once, only the generation differs.
func (c *Changes) steady(get func(context.Context) (journal.RookFacts, error)) func(context.Context) (journal.RookFacts, error) {
	var last journal.RookFacts
	var seen uint64
	return func(ctx context.Context) (journal.RookFacts, error) {
		made := c.count()
		now, err := get(ctx)
		if err != nil {
			return now, err
		}
		was := last
		was.Generation = now.Generation
		if made == seen && reflect.DeepEqual(was, now) {
			return last, nil
		}
		last, seen = now, made
		return now, nil
	}
}
