package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// hear acts on everything that others did meanwhile.
func (a *run) hear(inbox *Inbox) {
	unread, recheck := inbox.take()
	for _, n := range unread {
		a.actOn(n.event, n.payload)
	}
	if recheck {
		a.recheck()
	}
}

// actOn acts on an event of the action that is on disk.
func (a *run) actOn(event journal.Event, payload journal.Payload) {
	switch p := payload.(type) {
	case *journal.ActionCancelling:
		a.cancelled(event, p)
	case *journal.ActionRetried:
		a.retry(event, p)
	case *journal.ActionWarned:
		if !a.record.HasWarned(event.Actor, *p) { // it may be the run's own
			a.learn(event, p)
		}
		a.recheck()
	default:
		a.learn(event, p)
		a.recheck()
	}
}

// learn folds an event that somebody else wrote. The run's own events stay the
// causes of what it does.
func (a *run) learn(event journal.Event, payload journal.Payload) {
	event.Seq, event.Time = a.record.LastSeq, a.here(event.Time)
	a.fold(event, payload)
}

// cancelled turns back, if the action still may.
func (a *run) cancelled(event journal.Event, p *journal.ActionCancelling) {
	a.cancel = true
	if a.unfit != nil {
		return
	}
	if a.record.Cancelling == nil {
		a.learn(event, p)
	}
	a.considerCancel()
}

// recheck cuts the rest of everything that is held short. A look that is under
// way may have seen the world as it was before, so another one follows it.
func (a *run) recheck() {
	a.planning.hurry()
	for _, g := range a.groups {
		g.hurry()
	}
	for _, s := range a.byID {
		s.waits.busy = s.busy
		s.waits.hurry()
	}
}

// retry gives everything that failed or waits a new budget, at once.
func (a *run) retry(event journal.Event, p *journal.ActionRetried) {
	if a.stalledSeq > event.Seq {
		a.log.Info("the action stalled after the retry was requested; request it again")
		return
	}
	a.log.Info("the action is retried on request")
	a.learn(event, p)
	clear(a.said)
	a.planning = attention{busy: a.planning.busy}
	for _, s := range a.byID {
		s.exhausted, s.next, s.waits, s.waited = false, time.Time{}, attention{}, 0
		s.group.heldStep, s.group.attention = "", attention{busy: s.group.busy}
	}
}
