package actions

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// UnrecordedError is the error of a run that could not write the journal. The next run verifies the steps again.
type UnrecordedError struct {
	Action string
	// What describes for persons what happened but is not recorded. It is "" if nothing happened.
	What string
	// Err says why the journal could not be written.
	Err error
}

func (e *UnrecordedError) Error() string {
	what := e.What
	if what == "" {
		what = "the next events"
	}
	return fmt.Sprintf("action %s: record in the journal: %s: %v", e.Action, what, e.Err)
}

// Unwrap returns why the journal could not be written.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// unrecordedResults lists the results in drafts that are not on disk. Starts of steps are not results: these steps have
// not begun.
func unrecordedResults(drafts []journal.Draft) string {
	var what []string
	for _, draft := range drafts {
		switch p := draft.Payload.(type) {
		case *journal.StepDone:
			if !p.DryRun {
				what = append(what, p.Step+" is done")
			}
		case *journal.StepFailed:
			what = append(what, p.Step+" failed: "+p.Error)
		}
	}
	return strings.Join(what, ", ")
}
