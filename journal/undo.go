package journal

import "slices"

// Step returns the step with this id, which may be an undo step.
func (p Plan) Step(id string) (PlannedStep, bool) {
	is := func(s PlannedStep) bool { return s.ID == id }
	if i := slices.IndexFunc(p.Steps, is); i >= 0 {
		return p.Steps[i], true
	}
	if i := slices.IndexFunc(p.Undo, is); i >= 0 {
		return p.Undo[i], true
	}
	return PlannedStep{}, false
}

// ToUndo returns the undo steps that a cancellation must run: for each step that has started, the latest started first.
// It returns no steps after the point of no return, or in a dry run.
func (r ActionRecord) ToUndo() []PlannedStep {
	if r.PastNoReturn || r.Request.DryRun {
		return nil
	}
	begun := slices.DeleteFunc(slices.Clone(r.Plan.Undo), func(s PlannedStep) bool {
		undone := r.Steps[s.Undoes]
		return undone.Attempts == 0 && undone.StartedAt.IsZero()
	})
	place := func(s PlannedStep) int {
		return slices.IndexFunc(r.Plan.Steps, func(planned PlannedStep) bool { return planned.ID == s.Undoes })
	}
	slices.SortStableFunc(begun, func(x, y PlannedStep) int {
		if order := r.Steps[y.Undoes].StartedAt.Compare(r.Steps[x.Undoes].StartedAt); order != 0 {
			return order
		}
		return place(y) - place(x)
	})
	return begun
}

// Undoing reports whether the action is being cancelled and some undo steps are not done yet.
func (r ActionRecord) Undoing() bool {
	return r.Cancelling != nil && r.Ended == nil &&
		slices.ContainsFunc(r.ToUndo(), func(s PlannedStep) bool { return !r.Steps[s.ID].Done() })
}
