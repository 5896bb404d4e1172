package journal

import (
	"maps"
	"slices"
	"time"
)

// Kubernetes' keys of the taints on nodes that are not ready.
const (
	TaintNotReady           = "node.kubernetes.io/not-ready"
	TaintUnreachable        = "node.kubernetes.io/unreachable"
	TaintNetworkUnavailable = "node.kubernetes.io/network-unavailable"
	TaintUnschedulable      = "node.kubernetes.io/unschedulable"
)

// IsRecordedTaint reports whether taints with this key are part of a node's facts. EKCO ignores all other taints.
func IsRecordedTaint(key string) bool {
	switch key {
	case TaintNotReady, TaintUnreachable, TaintNetworkUnavailable, TaintUnschedulable:
		return true
	}
	return false
}

// Ready reports whether the node has no taint that [IsRecordedTaint]. It does not use the node's conditions. A cordoned
// node counts as not ready.
func (f NodeFacts) Ready() bool { return len(f.Taints) == 0 }

// Unreachable reports whether the node has an unreachable taint, and returns the earliest time of these taints, or zero
// if none has a time. Kubernetes adds one such taint for each effect, one after the other.
func (f NodeFacts) Unreachable() (since time.Time, unreachable bool) {
	for _, taint := range f.Taints {
		if taint.Key != TaintUnreachable {
			continue
		}
		unreachable = true
		if since.IsZero() || !taint.TimeAdded.IsZero() && taint.TimeAdded.Before(since) {
			since = taint.TimeAdded
		}
	}
	return since, unreachable
}

// StillUnreachable reports whether the node has been unreachable since the earlier facts: it still has one of their
// unreachable taints.
func (f NodeFacts) StillUnreachable(earlier NodeFacts) bool {
	return slices.ContainsFunc(f.Taints, func(taint Taint) bool {
		return taint.Key == TaintUnreachable && !taint.TimeAdded.IsZero() && slices.ContainsFunc(earlier.Taints, func(old Taint) bool {
			return old.Key == taint.Key && old.Effect == taint.Effect && old.TimeAdded.Equal(taint.TimeAdded)
		})
	})
}

// Equal reports whether both facts are the same.
func (f NodeFacts) Equal(other NodeFacts) bool {
	if len(f.Taints) != len(other.Taints) {
		return false
	}
	for i, taint := range f.Taints {
		o := other.Taints[i]
		if taint.Key != o.Key || taint.Effect != o.Effect || !taint.TimeAdded.Equal(o.TimeAdded) {
			return false
		}
	}
	return f.Flapping == other.Flapping && f.Role == other.Role && f.Excluded == other.Excluded && f.InternalIP == other.InternalIP &&
		f.Hostname == other.Hostname && f.CreatedAt.Equal(other.CreatedAt) && maps.Equal(f.Labels, other.Labels)
}
