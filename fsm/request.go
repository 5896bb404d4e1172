package fsm

import (
	"encoding/json"

	"github.com/replicatedhq/ekco/journal"
)

// Request is a person's request for an action of kind Kind about the thing with the name Name.
type Request struct {
	// Kind must be a kind that a person may request; see [ActionKind.Manual].
	Kind journal.ActionKind `json:"kind"`
	Name string             `json:"name"`
	// UID is the UID of the thing that the person saw under the name, or "". EKCO refuses the request if the thing now
	// has another UID.
	UID    string `json:"uid,omitempty"`
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Force overrides the preflights that a person may override.
	Force  bool `json:"force,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Costs makes an explanation of the action also say what the action removes. It has no other effect.
	Costs bool `json:"costs,omitempty"`
	// Warned are the warnings that the person saw, with the answers. Each becomes an event action.warned, unless the
	// action already has the same warning with the same person.
	Warned []journal.ActionWarned `json:"warned,omitempty"`
	// Refused is set if the request was already refused without an event. Then EKCO only records the refusal, and never
	// admits the request.
	Refused bool `json:"refused,omitempty"`
	// Input is further input for the kind of action, in the format that the machine defines.
	Input json.RawMessage `json:"input,omitempty"`
	// Seen is the result of a search in the cluster, in a type that the machine defines; nil without a search. The
	// operator sets it before it answers the request. A client does not send it.
	Seen any `json:"-"`
}

// Admission is the answer to a request.
type Admission struct {
	// Events are the events that the caller must append as one batch, even if the request is refused.
	Events []journal.Draft
	// Action is the id of the requested action, which may have been open before.
	Action string
	// Resumed is set if Action was already open.
	Resumed bool
	// AlreadyDone is set if there is nothing to do; Message says why.
	AlreadyDone bool
	// Message is for the person, and may be empty.
	Message string
}
