package node

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// The states of the node machine.
const (
	// Healthy: the node is not marked unreachable (it may still be unready).
	Healthy journal.NodeState = "Healthy"
	// Unknown: the node has the unreachable taint, and no action is open.
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

// Node is a thing of the node machine, and what the machine keeps of it. Its identity
// is the UID.
//
// What each decision looks at of each node comes first, so that it is fetched at once.
type Node struct {
	*fsm.Thing `json:"-"`
	// UnreachableSince is when EKCO saw the node lost, by EKCO's clock; zero while
	// the node is reachable. Ages count from it. The time of the taint is by
	// another clock, and only tells one loss from the next.
	UnreachableSince time.Time `json:"unreachable_since,omitzero"`
	// LostSeq is the event that told of that loss, ReachableSeq the last before it by which the node was reachable:
	// without that, a replay could take it for an older loss.
	LostSeq      uint64 `json:"lost_seq,omitempty"`
	ReachableSeq uint64 `json:"reachable_seq,omitempty"`
	// GoneAt is set once the object no longer exists.
	GoneAt time.Time `json:"gone_at,omitzero"`
	// Pods seen terminating on this node while it is unknown, by UID.
	Pods map[string]*Pod `json:"pods,omitempty"`
	// Facts are the last ones observed.
	Facts      journal.NodeFacts `json:"facts"`
	GoneReason string            `json:"gone_reason,omitempty"`
	// GoneUnseen is set when it was found gone and not seen since the journal lost what happened.
	GoneUnseen bool `json:"gone_unseen,omitempty"`
	// ReplacedBy is the UID of the node that now has this one's name.
	ReplacedBy string `json:"replaced_by,omitempty"`
	// Outlived are the open actions that EKCO began for an earlier loss of the node.
	Outlived []string `json:"outlived,omitempty"`
}

// Pod is a terminating pod of an unknown node.
type Pod struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// SeenAt is when EKCO saw that the pod has been asked to end, by EKCO's clock.
	// Grace is the time that the pod has from then on: DeletionTimestamp is by
	// another clock.
	SeenAt time.Time        `json:"seen_at,omitzero"`
	Grace  journal.Duration `json:"grace,omitzero"`
	// Action is the clear-node that took this pod on, or empty. An ended one
	// keeps its pods, so that they are not planned again, unless it was
	// abandoned.
	Action string `json:"action,omitempty"`
	// Outcome is how Action ended; empty while it is open.
	Outcome journal.Outcome `json:"outcome,omitempty"`
	// Seq is the event that last told of the pod.
	Seq uint64 `json:"seq"`
}
