package ring

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Lookout looks outside for what a request is about that the journal knows nothing of.
type Lookout interface {
	// Needed reports whether only a look can tell what the request is about. What names
	// all that the look depends on; one that began before since tells nothing. It is
	// asked in the loop, and must neither change nor keep the state.
	Needed(s *fsm.State, request fsm.Request) (what string, since time.Time, needed bool)
	// Look looks, and reports whether there is anything. What was seen becomes the
	// request's. A place that does not answer takes its time.
	Look(ctx context.Context, request fsm.Request) (seen any, found bool)
}

// lookAgain is how long what was found counts. A person is shown it, and then asks for
// the action: places that hang are not asked twice for that. The action itself captures
// everything anew.
const lookAgain = 2 * time.Minute

// lastLook is the last look which found something.
type lastLook struct {
	what      string
	began, at time.Time
	seen      any
}

// tells reports whether the look still says what is there, and looked for just that.
func (l lastLook) tells(what string, since time.Time) bool {
	return l.what == what && time.Since(l.at) < lookAgain && l.began.After(since)
}

// lookouts are those of the kinds of action, where there are any.
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

// lookedFor adds to a request what a look outside has come to, where one is needed. It
// looks outside of the loop.
func (b *Backend) lookedFor(ctx context.Context, request fsm.Request) (fsm.Request, error) {
	request.Seen = nil
	lookout := b.ring.looks[request.Kind]
	if lookout == nil {
		return request, nil
	}
	what, needed := "", false
	err := b.ring.do(ctx, func(s *fsm.State) {
		var since time.Time
		what, since, needed = lookout.Needed(s, request)
		if last := b.ring.lastLook; needed && last.tells(what, since) {
			request.Seen = last.seen
		}
	})
	if err != nil || !needed || request.Seen != nil {
		return request, err
	}
	look := lastLook{what: what, began: b.ring.clock.Now()}
	seen, found := lookout.Look(ctx, request)
	if ctx.Err() != nil {
		return request, ctx.Err()
	}
	request.Seen = seen
	if !found {
		return request, nil
	}
	look.at, look.seen = time.Now(), seen
	return request, b.ring.do(ctx, func(*fsm.State) { b.ring.lastLook = look })
}
