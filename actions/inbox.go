package actions

import (
	"sync"

	"github.com/replicatedhq/ekco/journal"
)

// Inbox passes events about its action to a run. It loses no event, and its methods never block. It is safe for
// concurrent use.
type Inbox struct {
	wake chan struct{}

	mu      sync.Mutex
	news    []news
	recheck bool
}

// news is an event of the action with its decoded payload.
type news struct {
	event   journal.Event
	payload journal.Payload
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox { return &Inbox{wake: make(chan struct{}, 1)} }

// Tell passes an event of the action that is on disk, with its payload. A run acts on action.cancelling, action.retried,
// action.joined and action.warned; any other event only makes it check its holds again. The run may have written the
// event itself.
func (b *Inbox) Tell(event journal.Event, payload journal.Payload) {
	b.put(func() { b.news = append(b.news, news{event, payload}) })
}

// Recheck makes the run check again, at once, what is held by a preflight or cannot be planned. Call it if what the
// action waits for may have changed. An extra call does no harm: failed steps keep their backoff, and an action that is
// not held continues as it is.
func (b *Inbox) Recheck() { b.put(func() { b.recheck = true }) }

func (b *Inbox) put(into func()) {
	b.mu.Lock()
	into()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// woken receives when the inbox has something new. A nil inbox never has.
func (b *Inbox) woken() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.wake
}

// take empties the inbox.
func (b *Inbox) take() (unread []news, recheck bool) {
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	unread, recheck = b.news, b.recheck
	b.news, b.recheck = nil, false
	return unread, recheck
}
