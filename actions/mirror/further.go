package mirror

import (
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// hasMoreProgress reports whether the first record has more progress than the second record of the same action.
func hasMoreProgress(one, other journal.ActionRecord) bool {
	return slices.Compare(progress(one), progress(other)) > 0
}

// progress returns numbers to compare, most important first: whether the action is past the point of no return, then
// the number of done steps.
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

// restoreTrimmed restores data in a mirrored record that an old EKCO may have left out to save space. The data comes
// from an older record of the same action, except for steps that were repeated since.
func restoreTrimmed(mirrored, older journal.ActionRecord) journal.ActionRecord {
	mirrored.Request = older.Request
	if older.Planned {
		mirrored.Plan = older.Plan
	}
	steps := maps.Clone(mirrored.Steps)
	for id, step := range older.Steps {
		if step.Done() && steps[id].DoneAt.Equal(step.DoneAt) {
			steps[id] = step
		}
	}
	mirrored.Steps = steps
	if len(mirrored.Warned) == 0 {
		mirrored.Warned = older.Warned
	}
	return mirrored
}
