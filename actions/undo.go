package actions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// wayBack returns the steps that are to be run, newest first, before an action
// that ends early has ended.
func (a *run) wayBack() (left []*stepState) {
	for _, planned := range a.record.ToUndo() {
		if s := a.byID[planned.ID]; !a.progress(s).Done() {
			left = append(left, s)
		}
	}
	return left
}

// windUp ends an action early. What was under way has finished first, and then
// what was begun is taken back, one step after the other.
func (a *run) windUp() (wake time.Time) {
	if a.inFlight > 0 && !a.undoing {
		return time.Time{}
	}
	left := a.wayBack()
	if len(left) == 0 {
		if a.inFlight == 0 {
			a.note(a.record.LastSeq, journal.TypeActionEnded, a.endedEarly())
		}
		return time.Time{}
	}
	if !a.undoing {
		a.beginUndo()
	}
	return a.startDue(time.Now(), left[:1])
}

// beginUndo puts on record that the action turns back, if it is not yet: the next
// start must not go on with it.
func (a *run) beginUndo() {
	a.undoing = true
	a.looking, a.stopLooking = context.WithCancel(a.ctx)
	clear(a.groups)
	for _, s := range a.undo {
		s.group = a.groupOf(s.planned, s.code, false)
	}
	if a.record.Cancelling == nil {
		a.note(a.record.LastSeq, journal.TypeActionCancelling, &journal.ActionCancelling{Reason: a.ending.Reason})
	}
}

// endedEarly adds to the end what was not taken back, and why.
func (a *run) endedEarly() *journal.ActionEnded {
	ended := *a.ending
	reasons := slices.DeleteFunc([]string{ended.Reason, a.leftAlone(a.undo)}, func(reason string) bool { return reason == "" })
	ended.Reason = strings.Join(reasons, "; ")
	return &ended
}
