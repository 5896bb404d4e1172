package journal

import (
	"encoding/json"
	"time"
)

// Carried is the state in the mirror that decisions need besides open actions.
type Carried struct {
	// Seq is the last event that this state and the open actions next to it include.
	Seq uint64 `json:"seq,omitempty"`
	// Pauses are the pauses in force, by their subject; nil if the mirror is of a version without them.
	Pauses map[string]Pause `json:"pauses"`
	// EndedAt is when the last action of each kind that has a cooldown ended.
	EndedAt map[ActionKind]time.Time `json:"ended_at,omitempty"`
	// Contests are EKCO's changes that another program undid, by thing, in the type that package fsm defines.
	Contests map[string]json.RawMessage `json:"contests,omitempty"`
}

// Pause is an administrator's order to start no actions.
type Pause struct {
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	// Until is zero for a pause without end.
	Until time.Time `json:"until,omitzero"`
	Seq   uint64    `json:"seq"`
	// Origin is set if the pause was set in another journal; see [PauseSet].
	Origin *PauseOrigin `json:"origin,omitempty"`
}
