package fsm

import (
	"encoding/json"

	"github.com/replicatedhq/ekco/journal"
)

// Request is a person's wish: an action of a kind about the thing of a name.
type Request struct {
	// Kind must be one that a person may ask for.
	Kind journal.ActionKind `json:"kind"`
	Name string             `json:"name"`
	// UID, when set, is that of the thing which the person was shown under the name.
	// Any other is refused.
	UID    string `json:"uid,omitempty"`
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Force goes past what may be forced.
	Force  bool `json:"force,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Costs has an explanation say what the action takes away too. It changes nothing else.
	Costs bool `json:"costs,omitempty"`
	// Warned are the warnings of preflights the person was shown, with the
	// answers; each becomes an action.warned, unless the action has it already
	// from the same person.
	Warned []journal.ActionWarned `json:"warned,omitempty"`
	// Refused says that the person was refused without a record, and asks for
	// the record alone: nothing is admitted.
	Refused bool `json:"refused,omitempty"`
	// Input is what else a person may say of the kind, in the shape its machine
	// defines.
	Input json.RawMessage `json:"input,omitempty"`
	// Seen is what a look outside has come to, of the type that the machine expects;
	// nil when nobody looked. It is found where the request is answered, never sent.
	Seen any `json:"-"`
}

// Admission is the answer to a request.
type Admission struct {
	// Events are to be appended as one batch, also when the request is refused.
	Events []journal.Draft
	// Action is the id of the action that does what was asked.
	Action string
	// Resumed is set when that action was open already.
	Resumed bool
	// AlreadyDone is set when there is nothing to do; Message says why.
	AlreadyDone bool
	// Message is for the person, and may be empty.
	Message string
}
