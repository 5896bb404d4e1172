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
	// Gone: the Node object is gone, and EKCO did not purge the node.
	Gone journal.NodeState = "Gone"
)

// Node is what the machine keeps of a node. Its identity is the UID.
//
// The fields that each decision reads come first, so that they share a cache line.
type Node struct {
	*fsm.Thing `json:"-"`
	// UnreachableSince is when EKCO saw the node lost, by EKCO's clock; zero while it is reachable. Ages count from it.
	// The taint's time is by another clock, and only distinguishes one loss from the next.
	UnreachableSince time.Time `json:"unreachable_since,omitzero"`
	// LostSeq is the event that reported that loss. ReachableSeq is the last event before it with a reachable node:
	// without it, a replay could take the loss for an older one.
	LostSeq      uint64 `json:"lost_seq,omitempty"`
	ReachableSeq uint64 `json:"reachable_seq,omitempty"`
	// GoneAt is set once the object no longer exists.
	GoneAt time.Time `json:"gone_at,omitzero"`
	// Pods seen terminating on this node while it is unknown, by UID.
	Pods map[string]*Pod `json:"pods,omitempty"`
	// Facts were observed last.
	Facts      journal.NodeFacts `json:"facts"`
	GoneReason string            `json:"gone_reason,omitempty"`
	// GoneUnseen is set if EKCO found it gone and has not seen it since the journal lost events.
	GoneUnseen bool `json:"gone_unseen,omitempty"`
	// ReplacedBy is the UID of the node that has the name now.
	ReplacedBy string `json:"replaced_by,omitempty"`
	// Outlived are the open actions that EKCO began for an earlier loss of the node.
	Outlived []string `json:"outlived,omitempty"`
}

// Pod is a terminating pod of an unreachable node.
type Pod struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// SeenAt is when EKCO saw that the pod is terminating, by EKCO's clock. Grace is the time that the pod has from
	// then on: DeletionTimestamp is by another clock.
	SeenAt time.Time        `json:"seen_at,omitzero"`
	Grace  journal.Duration `json:"grace,omitzero"`
	// Action is the clear-node that frees this pod, or empty. An ended one keeps its pods, so that they are not planned
	// again, unless it was abandoned.
	Action string `json:"action,omitempty"`
	// Outcome is how Action ended; empty while it is open.
	Outcome journal.Outcome `json:"outcome,omitempty"`
	// Seq is the last event about the pod.
	Seq uint64 `json:"seq"`
}
