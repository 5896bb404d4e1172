package journal

import (
	"encoding/json"
	"time"
)

// Carried is what decides besides the open actions, as the mirror holds it.
type Carried struct {
	// Seq is the last event that is in it, and in the open actions next to it.
	Seq uint64 `json:"seq,omitempty"`
	// Pauses are those in force, by what they are about; nil if the mirror's writer kept none.
	Pauses map[string]Pause `json:"pauses"`
	// EndedAt is when the last action of each kind that has a cooldown ended.
	EndedAt map[ActionKind]time.Time `json:"ended_at,omitempty"`
	// Contests are what EKCO changed and others changed back, by thing, in the shape that package fsm
	// defines.
	Contests map[string]json.RawMessage `json:"contests,omitempty"`
}

// Pause is an administrator's word to leave something alone.
type Pause struct {
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	// Until is zero for a pause without end.
	Until time.Time `json:"until,omitzero"`
	Seq   uint64    `json:"seq"`
	// Origin is set when another journal has the word; see [PauseSet].
	Origin *PauseOrigin `json:"origin,omitempty"`
}
