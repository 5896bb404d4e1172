package journal

import (
	"encoding/json"
	"time"
)

// Carried is the part of the mirror that decisions depend on, in addition to the open actions.
type Carried struct {
	// Seq is the number of the last event that is included in this state and in the mirror's open actions.
	Seq uint64 `json:"seq,omitempty"`
	// Pauses are the pauses in force, by their subject; nil if an EKCO wrote the mirror that did not store pauses.
	Pauses map[string]Pause `json:"pauses"`
	// EndedAt is when the last action of each kind that has a cooldown ended.
	EndedAt map[ActionKind]time.Time `json:"ended_at,omitempty"`
	// Contests are the changes that EKCO made and another program may undo, by thing. Package fsm defines their type.
	Contests map[string]json.RawMessage `json:"contests,omitempty"`
}

// Pause is an administrator's command that EKCO starts no actions automatically.
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
