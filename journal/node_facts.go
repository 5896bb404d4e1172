package journal

import (
	"maps"
	"slices"
	"time"
)

// Kubernetes' keys of taints of nodes that are not ready.
const (
	TaintNotReady           = "node.kubernetes.io/not-ready"
	TaintUnreachable        = "node.kubernetes.io/unreachable"
	TaintNetworkUnavailable = "node.kubernetes.io/network-unavailable"
	TaintUnschedulable      = "node.kubernetes.io/unschedulable"
)

// JudgedTaint reports whether EKCO judges nodes by taints of this key. Others
// are not part of a node's facts.
func JudgedTaint(key string) bool {
	switch key {
	case TaintNotReady, TaintUnreachable, TaintNetworkUnavailable, TaintUnschedulable:
		return true
	}
	return false
}

// Ready reports whether the node has none of the judged taints, of any effect.
// Conditions are not consulted, and a cordoned node counts as not ready.
func (f NodeFacts) Ready() bool { return len(f.Taints) == 0 }

// Unreachable reports whether the node has the unreachable taint, and since when.
// Kubernetes adds and removes one such taint for each effect, one after the other,
// and the earliest time counts. Since is zero if no taint has a time.
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

// StillUnreachable reports whether this is the same loss as in earlier facts: one of
// their unreachable taints is still there.
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
