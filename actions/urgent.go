package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// mustFinish reports whether a step of the batch was interrupted in a state in which it must not stop (see
// [StepDef.MustFinish]), or undoes such a step.
func (a *run) mustFinish(g *group, batch []*stepState) bool {
	return g.mustFinish && !a.record.Request.DryRun && slices.ContainsFunc(batch, func(s *stepState) bool {
		of := a.affectedStep(s)
		return of.code.MustFinish != nil && startedBefore(a.stepRecord(of)) && of.code.MustFinish(a.contextFor(of.planned))
	})
}

// affectedStep returns the step that s undoes, or s itself if it is no undo step.
func (a *run) affectedStep(s *stepState) *stepState {
	if undone := a.byID[s.planned.Undoes]; undone != nil {
		return undone
	}
	return s
}

// mayHaveToFinish reports whether a planned step, or the step that it undoes, has a [StepDef.MustFinish].
func (a *run) mayHaveToFinish(planned journal.PlannedStep, code StepDef) bool {
	if undone := a.byID[planned.Undoes]; undone != nil {
		code = undone.code
	}
	return code.MustFinish != nil
}

// mustUndo reports whether a step that failed too often is in a state in which it must not stop, and can be undone.
// Then the action ends early instead of stalling: a stalled step would stay in this state until a person retries it.
func (a *run) mustUndo(s *stepState) bool {
	return a.ending == nil && a.mustFinish(s.group, []*stepState{s}) &&
		slices.ContainsFunc(a.record.ToUndo(), func(undo journal.PlannedStep) bool { return undo.Undoes == s.planned.ID })
}
