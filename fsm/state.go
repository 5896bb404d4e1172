package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// FoldName names the JSON shape of [State] in snapshots. It changes whenever
// an older snapshot could be misread.
const FoldName = "ekco-state/1"

// State is everything EKCO knows: the journal, folded. It is plain data; its
// JSON form is what snapshots keep. Only the loop goroutine touches it.
type State struct {
	// Seq is the sequence number of the last event folded.
	Seq     uint64       `json:"seq"`
	Journal JournalState `json:"journal"`
	// Operator is the last operator that started.
	Operator OperatorState `json:"operator"`
	API      APIState      `json:"api"`
	// Nodes holds every node machine, by UID. Purged and Gone machines stay
	// until forgotten by retention, so that a purge can be finished or
	// explained after the object is gone.
	Nodes map[string]*Node `json:"nodes,omitempty"`
	// Actions holds the open actions, by id, and the ended ones that decisions
	// still depend on.
	Actions map[string]*journal.ActionRecord `json:"actions,omitempty"`
	// LastPurgeEndedAt starts the cooldown.
	LastPurgeEndedAt time.Time `json:"last_purge_ended_at,omitzero"`
	// Pauses in force, by node name; "" pauses everything.
	Pauses map[string]Pause `json:"pauses,omitempty"`
	// Refusals in force.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Problems are events that could not be folded, newest last, at most 20.
	Problems []string `json:"problems,omitempty"`
}

// JournalState is what the journal says of itself.
type JournalState struct {
	ID         string `json:"id,omitempty"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Salvaged is set while the journal is in safe mode.
	Salvaged   *journal.JournalSalvaged `json:"salvaged,omitempty"`
	SalvagedAt time.Time                `json:"salvaged_at,omitzero"`
}

// SafeMode reports whether EKCO may only observe and explain.
func (s JournalState) SafeMode() bool { return s.Salvaged != nil }

// OperatorState is the operator that wrote last.
type OperatorState struct {
	Version   string    `json:"version,omitempty"`
	Host      string    `json:"host,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
	DryRun    bool      `json:"dry_run,omitempty"`
}

// APIState is EKCO's view of the Kubernetes API.
type APIState struct {
	// LostAt is set during an outage.
	LostAt time.Time `json:"lost_at,omitzero"`
	// SettlingFrom is when observation last began or began again.
	SettlingFrom time.Time `json:"settling_from,omitzero"`
}

// Node is one node machine. Its identity is the UID.
type Node struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// State is what the machine recorded, Since when its durations count from.
	State journal.NodeState `json:"state"`
	Since time.Time         `json:"since"`
	// Facts are the last ones observed, FactsSeq the event that brought them.
	Facts    journal.NodeFacts `json:"facts"`
	FactsSeq uint64            `json:"facts_seq"`
	// GoneAt is set once the object no longer exists.
	GoneAt     time.Time `json:"gone_at,omitzero"`
	GoneReason string    `json:"gone_reason,omitempty"`
	// Pods seen terminating on this node while it is unknown, by UID.
	Pods map[string]*Pod `json:"pods,omitempty"`
}

// Pod is a terminating pod of an unknown node.
type Pod struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// Action is the clear-node that took this pod on, or empty. An ended dry
	// run keeps its pods, so that they are not planned again.
	Action string `json:"action,omitempty"`
	Seq    uint64 `json:"seq"`
}

// Pause is an administrator's word to leave something alone.
type Pause struct {
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	// Until is zero for a pause without end.
	Until time.Time `json:"until,omitzero"`
}

// Refusal is a policy.refused that has not been lifted.
type Refusal struct {
	Subject journal.Subject    `json:"subject"`
	Kind    journal.ActionKind `json:"kind"`
	Rule    string             `json:"rule"`
	Reason  string             `json:"reason"`
	Since   time.Time          `json:"since"`
	Seq     uint64             `json:"seq"`
}

// The states of the node machine.
const (
	// Healthy: the node is not marked unreachable (it may still be unready).
	Healthy journal.NodeState = "Healthy"
	// Unknown: the node has the unreachable taint.
	Unknown journal.NodeState = "Unknown"
	// Clearing: a clear-node action is open.
	Clearing journal.NodeState = "Clearing"
	// Cleared: no terminating pod that EKCO may free is left.
	Cleared journal.NodeState = "Cleared"
	// Purging: a purge-node action is open.
	Purging journal.NodeState = "Purging"
	// Purged: EKCO removed the node.
	Purged journal.NodeState = "Purged"
	// Gone: somebody else deleted the Node object.
	Gone journal.NodeState = "Gone"
)

// The states of the action machine.
const (
	Requested  journal.ActionStatus = "Requested"
	Running    journal.ActionStatus = "Running"
	Held       journal.ActionStatus = "Held"
	Stalled    journal.ActionStatus = "Stalled"
	Cancelling journal.ActionStatus = "Cancelling"
	Ended      journal.ActionStatus = "Ended"
)
