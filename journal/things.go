package journal

import (
	"encoding/json"
	"time"
)

// ThingObserved carries the facts of what a machine is about, where the machine has no
// event type of its own. The subject tells which thing it is.
type ThingObserved struct {
	// Machine names the machine that reads the facts.
	Machine string `json:"machine"`
	// Facts are in the shape the machine defines.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// ThingGone says that such a thing no longer exists.
type ThingGone struct {
	Machine string `json:"machine"`
	// Reason says how EKCO came to know.
	Reason string `json:"reason"`
}

// ThingTransitioned is a step of such a thing's machine, decided from facts.
type ThingTransitioned struct {
	Machine string `json:"machine"`
	From    State  `json:"from"`
	To      State  `json:"to"`
	// Event is the machine's event that led from From to To.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is the time the new state's durations count from. Zero means the
	// event's own time.
	Since time.Time `json:"since,omitzero"`
}
