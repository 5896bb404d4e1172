package mirror

import (
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// further reports whether the first of two records of an action has more progress than the second.
func further(one, other journal.ActionRecord) bool {
	return slices.Compare(progress(one), progress(other)) > 0
}

// progress returns the record's progress, most important first: whether it is past the point of no return, then how many
// steps are done.
func progress(r journal.ActionRecord) []int {
	done := 0
	for _, step := range r.Steps {
		done += count(step.Done())
	}
	return []int{count(r.PastNoReturn), done, len(r.Steps), count(r.Planned), count(r.Cancelling != nil)}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// restoreTrimmed restores in a mirrored record what an old EKCO may have left out to save space, from an older record of the
// same action.
func restoreTrimmed(mirrored, older journal.ActionRecord) journal.ActionRecord {
	mirrored.Request = older.Request
	if older.Planned {
		mirrored.Plan = older.Plan
	}
	steps := maps.Clone(mirrored.Steps)
	for id, step := range older.Steps {
		if _, known := steps[id]; known && step.Done() {
			steps[id] = step
		}
	}
	mirrored.Steps = steps
	if len(mirrored.Warned) == 0 {
		mirrored.Warned = older.Warned
	}
	return mirrored
}
