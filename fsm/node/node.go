package node

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// The states of the node machine.
const (
	// Healthy: the node does not have the unreachable taint. It may still be unready.
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
	// Gone: the Node object no longer exists, and EKCO did not purge the node.
	Gone journal.NodeState = "Gone"
)

// Node is EKCO's data about a node. The UID identifies the node.
//
// The fields that each decision reads come first, so that they are in the same cache line of the CPU.
type Node struct {
	*fsm.Thing `json:"-"`
	// UnreachableSince is when EKCO saw that the node is unreachable, by EKCO's clock; zero while it is reachable. EKCO
	// measures how long the node is unreachable from this time. It uses the time of the taint, which is by another
	// clock, only to distinguish one loss from the next.
	UnreachableSince time.Time `json:"unreachable_since,omitzero"`
	// LostSeq is the event that reported the present loss. ReachableSeq is the last event before LostSeq whose facts
	// show the node as reachable. Without ReachableSeq, a replay could take the present loss for the rest of an older
	// loss.
	LostSeq      uint64 `json:"lost_seq,omitempty"`
	ReachableSeq uint64 `json:"reachable_seq,omitempty"`
	// GoneAt is when the Node object was found to no longer exist; zero while it exists.
	GoneAt time.Time `json:"gone_at,omitzero"`
	// Pods are the pods that terminate on the node while it is unreachable, by UID.
	Pods map[string]*Pod `json:"pods,omitempty"`
	// Facts are the last observed facts.
	Facts      journal.NodeFacts `json:"facts"`
	GoneReason string            `json:"gone_reason,omitempty"`
	// GoneUnseen is set if the Node object no longer exists and EKCO has not observed it since the journal lost events.
	// EKCO then does not know who deleted it.
	GoneUnseen bool `json:"gone_unseen,omitempty"`
	// ReplacedBy is the UID of the node that has the name now.
	ReplacedBy string `json:"replaced_by,omitempty"`
	// Outlived are the ids of open automatic actions that EKCO requested because of an earlier loss of the node.
	Outlived []string `json:"outlived,omitempty"`
}

// Pod is a terminating pod of an unreachable node.
type Pod struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
	// SeenAt is when EKCO saw that the pod is terminating, by EKCO's clock. Grace is how long the pod may run after
	// that. EKCO does not use DeletionTimestamp for this, because it is by another clock.
	SeenAt time.Time        `json:"seen_at,omitzero"`
	Grace  journal.Duration `json:"grace,omitzero"`
	// Action is the id of the clear-node that frees this pod, or empty. It stays set after the end of the action, so
	// that EKCO requests no other one for the pod. If the action was abandoned, it is cleared.
	Action string `json:"action,omitempty"`
	// Outcome is how Action ended; empty while it is open.
	Outcome journal.Outcome `json:"outcome,omitempty"`
	// Seq is the last event about the pod.
	Seq uint64 `json:"seq"`
}
