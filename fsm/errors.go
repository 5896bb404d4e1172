package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Errors of requests and commands. Use errors.Is to test for them.
var (
	// ErrRefused: policy does not admit the request; see [RefusedError].
	ErrRefused = errors.New("refused")
	// ErrNotRefused: the reason to refuse the request no longer applies.
	ErrNotRefused = errors.New("the reason to refuse the request no longer applies; ask again")
	// ErrUnknown: the journal knows no thing with this name.
	ErrUnknown = errors.New("unknown")
	// ErrAmbiguous: several things have the name.
	ErrAmbiguous = errors.New("several things have that name")
	// ErrNoSuchAction: no action with this id is open.
	ErrNoSuchAction = errors.New("no such open action")
	// ErrPastNoReturn: the action can no longer be cancelled.
	ErrPastNoReturn = errors.New("past the point of no return")
	// ErrNotPaused: there is no such pause.
	ErrNotPaused = errors.New("not paused")
	// ErrNotInSafeMode: there is nothing to accept.
	ErrNotInSafeMode = errors.New("not in safe mode")
)

// RefusedError is an [ErrRefused]. Rule is the rule that refuses the request. Reason says why, and what would end the
// refusal.
type RefusedError struct{ Rule, Reason string }

func (e *RefusedError) Error() string { return fmt.Sprintf("refused by %s: %s", e.Rule, e.Reason) }

// Is makes errors.Is(err, ErrRefused) return true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// NothingToDoError is the reason why a person's request needs no action.
type NothingToDoError string

func (e NothingToDoError) Error() string { return string(e) }

// UnknownError is an [ErrUnknown] for a name that no thing has. Near has similar names.
type UnknownError struct {
	// Machine is the machine whose things EKCO searched.
	Machine, Name string
	Near          []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %q: EKCO sees no such name%s", e.Machine, e.Name, DidYouMean(e.Near))
}

// Is makes errors.Is(err, ErrUnknown) return true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// Unseen returns the message to show instead of Error if EKCO cannot see which things exist now.
func (e *UnknownError) Unseen() string {
	return fmt.Sprintf("%s %q is not in the journal, and EKCO cannot see whether there is one now", e.Machine, e.Name)
}

// DidYouMean returns "; did you mean" and the names, or "" without names.
func DidYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// maxNear is how many names [Near] returns at most.
const maxNear = 3

// maxNameLength is the length above which [Near] does not compare a name. All names in a cluster and all ids of actions
// are shorter.
const maxNameLength = 512

// Near returns the known names that a person may have meant by name, the most similar first. A known name is similar if
// at most about a third of its letters differ, if one of the two names begins with the other, or if the known name ends
// with a slash and name. Case does not matter. If name is longer than maxNameLength, Near returns nil.
func Near(name string, known iter.Seq[string]) []string {
	if len(name) > maxNameLength {
		return nil // comparing it would block the loop for minutes
	}
	name = strings.ToLower(name)
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for other := range known {
		lower := strings.ToLower(other)
		distance := editDistance(name, lower)
		part := len(name) > 1 && (strings.HasPrefix(lower, name) || strings.HasPrefix(name, lower) || strings.HasSuffix(lower, "/"+name))
		if part || distance <= max(1, (max(len(name), len(other))+1)/3) {
			found = append(found, candidate{other, distance})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	found = slices.Compact(found) // two sources may know the same action
	var names []string
	for _, c := range found[:min(maxNear, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// editDistance returns the Levenshtein distance of two names, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
