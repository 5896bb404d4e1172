package journal

import "slices"

// Step returns the planned step with that id, including undo steps.
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

// ToUndo returns the steps that undo started ones if the action is cancelled: the latest started first. There are
// none past the point of no return, or in a dry run.
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

// Undoing reports whether the action is cancelled and some undo steps are left.
func (r ActionRecord) Undoing() bool {
	return r.Cancelling != nil && r.Ended == nil &&
		slices.ContainsFunc(r.ToUndo(), func(s PlannedStep) bool { return !r.Steps[s.ID].Done() })
}
