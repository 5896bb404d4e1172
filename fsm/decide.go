package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Decisions is what must happen next.
type Decisions struct {
	// Events are to be appended as one batch.
	Events []journal.Draft
	// Next is when to decide again even if nothing happens; zero means never.
	Next time.Time
}

// Request is a person's wish, or an administrator's command.
type Request struct {
	Kind   journal.ActionKind
	Node   string
	Actor  string
	Reason string
	Force  bool
	DryRun bool
	// Warned are the warnings of preflights the person was shown, with the
	// answers; each becomes an action.warned.
	Warned []journal.ActionWarned
}
