package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// readInbox acts on everything in the inbox.
func (a *run) readInbox(inbox *Inbox) {
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

// learn folds an event that another writer appended. LastSeq stays, so the causes of the run's events stay its own
// events.
func (a *run) learn(event journal.Event, payload journal.Payload) {
	event.Seq, event.Time = a.record.LastSeq, a.localTime(event.Time)
	a.fold(event, payload)
}

// cancelled ends the action early, if it still can.
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

// recheck checks everything that is held at once. A running check may have read the former state, so another one follows
// it.
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

// retry tries everything that failed or waits at once, with a new budget.
func (a *run) retry(event journal.Event, p *journal.ActionRetried) {
	if a.stalledSeq > event.Seq {
		a.log.Info("the action stalled after the retry was requested; request it again")
		return
	}
	a.log.Info("the action is retried on request")
	a.learn(event, p)
	clear(a.reasons)
	a.planning = checkState{busy: a.planning.busy}
	for _, s := range a.byID {
		s.exhausted, s.next, s.waits, s.waited = false, time.Time{}, checkState{}, 0
		s.group.heldStep, s.group.checkState = "", checkState{busy: s.group.busy}
	}
}
