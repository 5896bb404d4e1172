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
	news    []inboxEvent
	recheck bool
}

// inboxEvent is an event of the action with its decoded payload.
type inboxEvent struct {
	event   journal.Event
	payload journal.Payload
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox { return &Inbox{wake: make(chan struct{}, 1)} }

// Tell passes an event of the action, which must be on disk, with its payload. A run acts on action.cancelling,
// action.retried, action.joined and action.warned. After any other event it only checks its holds again. The run may
// have written the event itself.
func (b *Inbox) Tell(event journal.Event, payload journal.Payload) {
	b.put(func() { b.news = append(b.news, inboxEvent{event, payload}) })
}

// Recheck makes the run check at once everything that a preflight holds or that cannot be planned. Call it if the
// action may no longer have to wait. An extra call does no harm: failed steps keep their backoff, and an action without
// holds continues as before.
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

// woken returns a channel that receives when the inbox has something new. The channel of a nil inbox never receives.
func (b *Inbox) woken() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.wake
}

// takeAll empties the inbox.
func (b *Inbox) takeAll() (unread []inboxEvent, recheck bool) {
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	unread, recheck = b.news, b.recheck
	b.news, b.recheck = nil, false
	return unread, recheck
}
