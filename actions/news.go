package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func (a *run) readInbox(inbox *Inbox) {
	unread, recheck := inbox.takeAll()
	for _, n := range unread {
		a.handleEvent(n.event, n.payload)
	}
	if recheck {
		a.recheckHolds()
	}
}

// handleEvent handles an event of the action that is on disk.
func (a *run) handleEvent(event journal.Event, payload journal.Payload) {
	switch p := payload.(type) {
	case *journal.ActionCancelling:
		a.handleCancel(event, p)
	case *journal.ActionRetried:
		a.retrySteps(event, p)
	case *journal.ActionWarned:
		if !a.record.HasWarned(event.Actor, *p) { // the run itself may have written the event
			a.foldForeign(event, p)
		}
		a.recheckHolds()
	default:
		a.foldForeign(event, p)
		a.recheckHolds()
	}
}

// foldForeign folds an event that another writer appended. It keeps LastSeq, so that the causes of the run's events are
// the run's own events.
func (a *run) foldForeign(event journal.Event, payload journal.Payload) {
	event.Seq, event.Time = a.record.LastSeq, a.localTime(event.Time)
	a.foldEvent(event, payload)
}

// handleCancel ends the action early, if that is still possible.
func (a *run) handleCancel(event journal.Event, p *journal.ActionCancelling) {
	a.cancel = true
	if a.unfitReason != nil {
		return
	}
	if a.record.Cancelling == nil {
		a.foldForeign(event, p)
	}
	a.considerCancel()
}

// recheckHolds checks all holds at once. A running check may have read the former state, so another check follows
// it.
func (a *run) recheckHolds() {
	a.planning.scheduleNow()
	for _, g := range a.groups {
		g.scheduleNow()
	}
	for _, s := range a.byID {
		s.waits.busy = s.busy
		s.waits.scheduleNow()
	}
}

// retrySteps makes all failed or waiting steps try again at once, with a new failure budget.
func (a *run) retrySteps(event journal.Event, p *journal.ActionRetried) {
	if a.stalledSeq > event.Seq {
		a.log.Info("the action stalled after the retry was requested; request it again")
		return
	}
	a.log.Info("the action is retried on request")
	a.foldForeign(event, p)
	clear(a.reasons)
	a.planning = checkState{busy: a.planning.busy}
	for _, s := range a.byID {
		s.exhausted, s.next, s.waits, s.waited = false, time.Time{}, checkState{}, 0
		s.group.heldStep, s.group.checkState = "", checkState{busy: s.group.busy}
	}
}
