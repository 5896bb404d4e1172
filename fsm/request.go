package fsm

import (
	"encoding/json"

	"github.com/replicatedhq/ekco/journal"
)

// Request is a person's request for an action of a kind about the thing with a name.
type Request struct {
	// Kind must be one that a person may request.
	Kind journal.ActionKind `json:"kind"`
	Name string             `json:"name"`
	// UID, if set, is that of the thing which the person saw under the name. A thing with another UID is refused.
	UID    string `json:"uid,omitempty"`
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Force overrides what can be forced.
	Force  bool `json:"force,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Costs makes an explanation also say what the action takes away. It changes nothing else.
	Costs bool `json:"costs,omitempty"`
	// Warned are the preflight warnings that the person saw, with the answers. Each becomes an action.warned, unless
	// the action already has it from the same person.
	Warned []journal.ActionWarned `json:"warned,omitempty"`
	// Refused says that the person was refused without a record, and requests only that record. It admits nothing.
	Refused bool `json:"refused,omitempty"`
	// Input is the kind's additional input, in the format that its machine defines.
	Input json.RawMessage `json:"input,omitempty"`
	// Seen is the result of a search outside of the journal, in the machine's own type; nil without a search. It is set
	// where the request is answered, never sent.
	Seen any `json:"-"`
}

// Admission is the answer to a request.
type Admission struct {
	// Events are to be appended as one batch, even if the request is refused.
	Events []journal.Draft
	// Action is the id of the action that does what the person requested.
	Action string
	// Resumed is set if that action was already open.
	Resumed bool
	// AlreadyDone is set if there is nothing to do; Message says why.
	AlreadyDone bool
	// Message is for the person, and may be empty.
	Message string
}
