package journal

import (
	"encoding/json"
	"time"
)

// ThingObserved has the facts of a thing whose machine has no event type of its own. The subject is the thing.
type ThingObserved struct {
	// Machine is the machine that reads the facts.
	Machine string `json:"machine"`
	// Facts are in the type that the machine defines.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// ThingGone says that such a thing no longer exists.
type ThingGone struct {
	Machine string `json:"machine"`
	// Reason says how EKCO knows.
	Reason string `json:"reason"`
}

// ThingTransitioned is a transition of such a thing's machine.
type ThingTransitioned struct {
	Machine string `json:"machine"`
	From    State  `json:"from"`
	To      State  `json:"to"`
	// Event is the machine's event that caused the transition.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is the begin of the new state's durations. Zero means the event's own time.
	Since time.Time `json:"since,omitzero"`
}
