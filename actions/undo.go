package actions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// undoSteps returns the undo steps that must run before an early end of the action, in reverse order.
func (a *run) undoSteps() (left []*stepState) {
	for _, planned := range a.record.ToUndo() {
		if s := a.byID[planned.ID]; !a.stepRecord(s).Done() {
			left = append(left, s)
		}
	}
	return left
}

// windUp ends an action early. It waits for the running steps, then runs the undo steps one after the other.
func (a *run) windUp() (wake time.Time) {
	if a.inFlight > 0 && !a.undoing {
		return time.Time{}
	}
	left := a.undoSteps()
	if len(left) == 0 {
		if a.inFlight == 0 {
			a.draftEvent(a.record.LastSeq, journal.TypeActionEnded, a.endedEarly())
		}
		return time.Time{}
	}
	if !a.undoing {
		a.beginUndo()
	}
	return a.startDue(time.Now(), left[:1])
}

// beginUndo begins to undo the action. It records that first, so that EKCO does not continue the action after a
// restart.
func (a *run) beginUndo() {
	a.undoing = true
	a.looking, a.stopLooking = context.WithCancel(a.ctx)
	clear(a.groups)
	for _, s := range a.undo {
		s.group = a.groupFor(s.planned, s.code, false)
	}
	if a.record.Cancelling == nil {
		a.draftEvent(a.record.LastSeq, journal.TypeActionCancelling, &journal.ActionCancelling{Reason: a.ending.Reason})
	}
}

// endedEarly returns the event of an early end. It names each change that was not undone, with the reason.
func (a *run) endedEarly() *journal.ActionEnded {
	ended := *a.ending
	reasons := slices.DeleteFunc([]string{ended.Reason, a.leftAloneText(a.undo)}, func(reason string) bool { return reason == "" })
	ended.Reason = strings.Join(reasons, "; ")
	return &ended
}
