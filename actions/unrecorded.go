package actions

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// UnrecordedError is what an action has come to that could not be written down.
// The next run of the action finds it out again.
type UnrecordedError struct {
	Action string
	// What has happened all the same, for people; empty if nothing has.
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

// happened says what of the drafts has happened although they are not on disk.
// What they announce has not begun.
func happened(drafts []journal.Draft) string {
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
