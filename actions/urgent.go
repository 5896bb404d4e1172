package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// urgent reports whether a step of the batch was interrupted where it must not stay, or takes
// back one that was.
func (a *run) urgent(g *group, batch []*stepState) bool {
	return g.urgent && !a.record.Request.DryRun && slices.ContainsFunc(batch, func(s *stepState) bool {
		of := a.affects(s)
		code, is := of.code.(UrgentStep)
		return is && startedBefore(a.progress(of)) && code.Urgent(a.contextOf(of.planned))
	})
}

// affects returns the step that a step takes back, or else the step itself.
func (a *run) affects(s *stepState) *stepState {
	if undone := a.byID[s.planned.Undoes]; undone != nil {
		return undone
	}
	return s
}

// canBeUrgent reports whether a planned step, or the one that it takes back, is an [UrgentStep].
func (a *run) canBeUrgent(planned journal.PlannedStep, code Step) bool {
	if undone := a.byID[planned.Undoes]; undone != nil {
		code = undone.code
	}
	_, is := code.(UrgentStep)
	return is
}

// mustTurnBack reports whether a step was given up where it must not stay, and what it did
// can be taken back: then the action does not stall, which would leave it there until somebody
// comes.
func (a *run) mustTurnBack(s *stepState) bool {
	return a.ending == nil && a.urgent(s.group, []*stepState{s}) &&
		slices.ContainsFunc(a.record.ToUndo(), func(back journal.PlannedStep) bool { return back.Undoes == s.planned.ID })
}
