package actions

import (
	"sync"

	"github.com/replicatedhq/ekco/journal"
)

// Inbox tells a run what others did about its action while it is under way. Nothing
// that was put into it is lost, and putting never waits. It is safe for concurrent
// use.
type Inbox struct {
	wake chan struct{}

	mu      sync.Mutex
	news    []news
	recheck bool
}

// news is an event of the action, and its payload as it was decoded.
type news struct {
	event   journal.Event
	payload journal.Payload
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox { return &Inbox{wake: make(chan struct{}, 1)} }

// Tell hands on an event of the action that is on disk, with its payload. Those that
// concern a run are action.cancelling, action.retried, action.joined and
// action.warned; any other only has it look again. The run may have written the event
// itself.
func (b *Inbox) Tell(event journal.Event, payload journal.Payload) {
	b.put(func() { b.news = append(b.news, news{event, payload}) })
}

// Recheck says that what the action may wait for has changed. What is held, by a
// preflight or because it cannot be planned, is looked at again at once. Steps that
// failed keep their rest, and an action that is not held goes on as it is, so it
// does no harm to say it once too often.
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

// woken is ready when there is something new; never for nil.
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
