package rook

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Changes has the custom resources and Ceph looked at when EKCO has changed something of them. The zero Changes is
// ready for use; it is safe for concurrent use.
type Changes struct {
	observers.Nudge
	made atomic.Uint64
}

// Look has them looked at because EKCO changed something.
func (c *Changes) Look() {
	c.made.Add(1)
	c.Nudge.Look()
}

// count returns how many changes EKCO has made.
func (c *Changes) count() uint64 {
	if c == nil {
		return 0
	}
	return c.made.Load()
}

// steady keeps the generation from being a fact that changes by itself: the CRDs of Rook 1.0 have
// it count what Rook writes into the status as well. The generation stays the one with which what
// EKCO reads was last seen to become otherwise, or with which EKCO looked after a change of its
// own: who undoes that at once leaves nothing otherwise but the generation.
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
