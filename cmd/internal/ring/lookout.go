package ring

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Lookout searches outside the journal for the subject of a request that the journal does not know.
type Lookout interface {
	// Needed reports whether the request needs a search. what identifies the search with all its parameters. The result
	// of a search that began before since is outdated. Needed is called in the loop, and must neither change nor keep
	// the state.
	Needed(s *fsm.State, request fsm.Request) (what string, since time.Time, needed bool)
	// Search reports whether it found anything. seen becomes part of the request. A place that does not answer delays
	// Search until a timeout.
	Search(ctx context.Context, request fsm.Request) (seen any, found bool)
}

// searchReuseTime is how long a result is reused. A user first sees the result and then requests the action, and should
// not wait twice for places that hang. The action itself captures everything again.
const searchReuseTime = 2 * time.Minute

// lastSearch is the result of the last successful search.
type lastSearch struct {
	what      string
	began, at time.Time
	seen      any
}

// isReusable reports whether the result can be reused.
func (l lastSearch) isReusable(what string, since time.Time) bool {
	return l.what == what && time.Since(l.at) < searchReuseTime && l.began.After(since)
}

func (r *Ring) lookouts() map[journal.ActionKind]Lookout {
	lookouts := map[journal.ActionKind]Lookout{}
	for _, c := range r.cfg.Capabilities {
		if c.Lookout == nil {
			continue
		}
		lookout := c.Lookout(r.kube, r.log)
		for _, kind := range c.Fsm.Kinds {
			lookouts[kind.Name] = lookout
		}
	}
	return lookouts
}

// withSearchResult adds the result of a search to a request that needs one. It searches outside the loop.
func (b *Backend) withSearchResult(ctx context.Context, request fsm.Request) (fsm.Request, error) {
	request.Seen = nil
	lookout := b.ring.lookoutsByKind[request.Kind]
	if lookout == nil {
		return request, nil
	}
	what, needed := "", false
	err := b.ring.do(ctx, func(s *fsm.State) {
		var since time.Time
		what, since, needed = lookout.Needed(s, request)
		if last := b.ring.lastSearch; needed && last.isReusable(what, since) {
			request.Seen = last.seen
		}
	})
	if err != nil || !needed || request.Seen != nil {
		return request, err
	}
	search := lastSearch{what: what, began: b.ring.clock.Now()}
	seen, found := lookout.Search(ctx, request)
	if ctx.Err() != nil {
		return request, ctx.Err()
	}
	request.Seen = seen
	if !found {
		return request, nil
	}
	search.at, search.seen = time.Now(), seen
	return request, b.ring.do(ctx, func(*fsm.State) { b.ring.lastSearch = search })
}
