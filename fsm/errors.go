package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Errors of requests and commands, for errors.Is.
var (
	// ErrRefused: policy does not admit the request; see [RefusedError].
	ErrRefused = errors.New("refused")
	// ErrNotRefused: what refused a request a moment ago does so no more.
	ErrNotRefused = errors.New("the reason to refuse the request no longer applies; ask again")
	// ErrUnknown: the journal knows no thing of the name.
	ErrUnknown = errors.New("unknown")
	// ErrAmbiguous: several things have the name.
	ErrAmbiguous = errors.New("several things have that name")
	// ErrNoSuchAction: no action of the id is open.
	ErrNoSuchAction = errors.New("no such open action")
	// ErrPastNoReturn: the action goes only forward.
	ErrPastNoReturn = errors.New("past the point of no return")
	// ErrNotPaused: there is no such pause.
	ErrNotPaused = errors.New("not paused")
	// ErrNotInSafeMode: there is nothing to accept.
	ErrNotInSafeMode = errors.New("not in safe mode")
)

// RefusedError says which rule refuses a request, and what would lift it. It
// is an [ErrRefused].
type RefusedError struct{ Rule, Reason string }

func (e *RefusedError) Error() string { return fmt.Sprintf("refused by %s: %s", e.Rule, e.Reason) }

// Is makes errors.Is(err, ErrRefused) hold.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// NothingToDoError says why a person's request needs no action.
type NothingToDoError string

func (e NothingToDoError) Error() string { return string(e) }

// UnknownError says that there is no thing of the name, as far as EKCO sees, and which
// known names are near. It is an [ErrUnknown].
type UnknownError struct {
	// Machine is that of the things.
	Machine, Name string
	Near          []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %q: EKCO sees none with this name%s", e.Machine, e.Name, DidYouMean(e.Near))
}

// Is makes errors.Is(err, ErrUnknown) hold.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// Unseen says the same where EKCO does not see what is there now.
func (e *UnknownError) Unseen() string {
	return fmt.Sprintf("%s %q is not in the journal, and EKCO cannot see whether there is one now", e.Machine, e.Name)
}

// DidYouMean asks for the names, if there are any.
func DidYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// maxNear is how many near names an error lists.
const maxNear = 3

// longestName is longer than any name in a cluster, with its kind, and any action's id.
const longestName = 512

// Near returns the names that a person may have meant, the nearest first: at
// most a third of the letters differ, or one name begins with the other, or ends with what
// was meant after a slash. Upper and lower case are the same. Nothing is near to what no
// name is as long as.
func Near(name string, known iter.Seq[string]) []string {
	if len(name) > longestName {
		return nil // to compare it would keep the loop busy for minutes
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
		if part || distance <= max(1, max(len(name), len(other))/3) {
			found = append(found, candidate{other, distance})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	found = slices.Compact(found) // an action may be known from two places
	var names []string
	for _, c := range found[:min(maxNear, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// editDistance is the Levenshtein distance of the names' bytes.
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
