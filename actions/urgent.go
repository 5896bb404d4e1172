package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// mustFinish reports whether a step of the batch was interrupted where it must not stop, see [StepDef.MustFinish], or
// undoes such a step.
func (a *run) mustFinish(g *group, batch []*stepState) bool {
	return g.mustFinish && !a.record.Request.DryRun && slices.ContainsFunc(batch, func(s *stepState) bool {
		of := a.affects(s)
		return of.code.MustFinish != nil && startedBefore(a.progress(of)) && of.code.MustFinish(a.contextFor(of.planned))
	})
}

// affects returns the step that a step undoes, or else the step itself.
func (a *run) affects(s *stepState) *stepState {
	if undone := a.byID[s.planned.Undoes]; undone != nil {
		return undone
	}
	return s
}

// mayHaveToFinish reports whether a planned step, or the one that it undoes, has a [StepDef.MustFinish].
func (a *run) mayHaveToFinish(planned journal.PlannedStep, code StepDef) bool {
	if undone := a.byID[planned.Undoes]; undone != nil {
		code = undone.code
	}
	return code.MustFinish != nil
}

// mustUndo reports whether a step that failed too often was interrupted where it must not stop, and can be undone. The
// action then does not stall, which would leave it there until a person retries it.
func (a *run) mustUndo(s *stepState) bool {
	return a.ending == nil && a.mustFinish(s.group, []*stepState{s}) &&
		slices.ContainsFunc(a.record.ToUndo(), func(undo journal.PlannedStep) bool { return undo.Undoes == s.planned.ID })
}
