package journal

import (
	"encoding/json"
	"time"
)

// ThingObserved has new facts about a thing, the subject of the event. Machines that have their own event types for
// facts do not use it.
type ThingObserved struct {
	// Machine is the name of the thing's machine.
	Machine string `json:"machine"`
	// Facts are the facts as JSON. The machine defines their type.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// ThingGone says that a thing no longer exists.
type ThingGone struct {
	Machine string `json:"machine"`
	// Reason says how EKCO knows that it no longer exists.
	Reason string `json:"reason"`
}

// ThingTransitioned says that the state of a thing changed.
type ThingTransitioned struct {
	Machine string `json:"machine"`
	From    State  `json:"from"`
	To      State  `json:"to"`
	// Event is the name of the transition in the machine's table.
	Event string `json:"event"`
	// Reason is for people.
	Reason string `json:"reason"`
	// Since is when the new state began. Zero means the time of this event.
	Since time.Time `json:"since,omitzero"`
}
