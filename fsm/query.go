package fsm

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// Subject returns the node as the subject of an event.
func (n *Node) Subject() journal.Subject { return journal.NodeSubject(n.Name, n.UID) }

// Observed reports whether the node's facts are known. They are not for a node
// that EKCO knows only from an adopted action.
func (n *Node) Observed() bool { return n.FactsSeq != 0 }

// lastFacts returns a copy of what was last observed, or nil.
func (n *Node) lastFacts() *journal.NodeFacts {
	if !n.Observed() {
		return nil
	}
	facts := n.Facts
	facts.Taints = slices.Clone(facts.Taints)
	return &facts
}

// Present reports whether the Node object exists, as far as EKCO knows. A node
// is not present once its purge is done, even before it is seen to go.
func (n *Node) Present() bool {
	return n.Observed() && n.GoneAt.IsZero() && n.State != Purged && !n.purged()
}

// Ready reports whether the node is present and ready as kURL counts it.
func (n *Node) Ready() bool { return n.Present() && n.Facts.Ready() }

// Unreachable reports whether the node is present and has the unreachable
// taint.
func (n *Node) Unreachable() bool { return n.Present() && !n.UnreachableSince.IsZero() }

// mayAnswer reports whether the node is present and may be reachable now. Of one
// that flaps nobody knows.
func (n *Node) mayAnswer() bool {
	return n.Present() && (n.UnreachableSince.IsZero() || n.Facts.Flapping)
}

// mayBeReady reports whether the node is ready, or may be.
func (n *Node) mayBeReady() bool { return n.Ready() || n.Present() && n.Facts.Flapping }

// finished reports whether the machine has come to an end.
func (n *Node) finished() bool { return n.State == Purged || n.State == Gone }

// NodeByName returns the machines of that name: the present one first, then
// the ones with an open action, then the others, the last seen first.
func (s *State) NodeByName(name string) []*Node {
	var nodes []*Node
	for _, uid := range s.cached().byName[name] {
		if n := s.Nodes[uid]; n != nil {
			nodes = append(nodes, n)
		}
	}
	rank := func(n *Node) int {
		switch {
		case n.Present():
			return 0
		case s.hasOpenAction(n.UID):
			return 1
		}
		return 2
	}
	slices.SortFunc(nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.FactsSeq, a.FactsSeq), cmp.Compare(a.UID, b.UID))
	})
	return nodes
}

// OpenActions returns the open actions, oldest first. The fold never changes
// what it returned, so other goroutines may keep it; they must not change it
// either.
func (s *State) OpenActions() []journal.ActionRecord {
	shared := s.cached().shared
	open := make([]journal.ActionRecord, 0, len(s.Actions))
	for id, rec := range s.Actions {
		shared[id] = true
		open = append(open, *rec)
	}
	slices.SortFunc(open, func(a, b journal.ActionRecord) int { return requestOrder(&a, &b) })
	return open
}

// own makes sure that nobody else holds the maps of the record.
func (s *State) own(rec *journal.ActionRecord) {
	shared := s.cached().shared
	if !shared[rec.ID] {
		return
	}
	delete(shared, rec.ID)
	rec.Steps, rec.Holds, rec.Left = maps.Clone(rec.Steps), maps.Clone(rec.Holds), maps.Clone(rec.Left)
}

// KnownNodes returns copies of all node machines, by name. They share nothing
// with the state that the fold changes.
func (s *State) KnownNodes() []Node {
	nodes := make([]Node, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		clone := *n
		clone.Outlived = slices.Clone(n.Outlived)
		clone.Pods = make(map[string]*Pod, len(n.Pods))
		for uid, pod := range n.Pods {
			podClone := *pod
			clone.Pods[uid] = &podClone
		}
		nodes = append(nodes, clone)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return compareNodes(&a, &b) })
	return nodes
}

// requestOrder orders actions by the time of their request.
func requestOrder(a, b *journal.ActionRecord) int {
	return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), cmp.Compare(a.ID, b.ID))
}

func (s *State) hasOpenAction(nodeUID string) bool {
	for _, rec := range s.Actions {
		if rec.Subject.UID == nodeUID {
			return true
		}
	}
	return false
}

// openClearOf returns the open clear-node that was asked to free the pod. It
// matters when the action was adopted before the pod was seen.
func (s *State) openClearOf(nodeUID, podUID string) string {
	found := ""
	for id, rec := range s.Actions {
		if rec.Kind != journal.ActionClearNode || rec.Subject.UID != nodeUID || (found != "" && id > found) {
			continue
		}
		if slices.ContainsFunc(rec.Request.Pods, func(p journal.PodRef) bool { return p.UID == podUID }) {
			found = id
		}
	}
	return found
}

// splitPodName splits "namespace/name".
func splitPodName(name string) (namespace, pod string) {
	namespace, pod, found := strings.Cut(name, "/")
	if !found {
		return "", name
	}
	return namespace, pod
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
