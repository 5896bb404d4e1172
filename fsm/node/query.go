package node

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Observed reports whether EKCO has observed the node. It has not if it knows the node only from an adopted action or
// from traces.
func (n *Node) Observed() bool { return n.FactsSeq != 0 }

// lastFacts returns a copy of the last facts, or nil if EKCO has not observed the node.
func (n *Node) lastFacts() *journal.NodeFacts {
	if !n.Observed() {
		return nil
	}
	facts := n.Facts
	facts.Taints = slices.Clone(facts.Taints)
	return &facts
}

// Present reports whether the Node object exists, as far as EKCO knows. It returns false after a purge, even if EKCO
// has not yet observed that the object no longer exists.
func (n *Node) Present() bool {
	return n.Observed() && n.GoneAt.IsZero() && n.State != Purged && !n.isPurged()
}

// Ready reports whether the node is present and ready; see [journal.NodeFacts.Ready].
func (n *Node) Ready() bool { return n.Present() && n.Facts.Ready() }

// Unreachable reports whether the node is present and has the unreachable taint.
func (n *Node) Unreachable() bool { return !n.UnreachableSince.IsZero() && n.Present() }

// Lost reports whether the node has the unreachable taint in its last facts, even if the Node no longer exists.
func (n *Node) Lost() bool {
	_, unreachable := n.Facts.Unreachable()
	return unreachable
}

// mayAnswer reports whether the node is present and reachable, or flapping, so that it may be reachable now.
func (n *Node) mayAnswer() bool {
	return n.Present() && (n.UnreachableSince.IsZero() || n.Facts.Flapping)
}

// mayBeReady reports whether the node is ready, or flapping.
func (n *Node) mayBeReady() bool { return n.Ready() || n.Present() && n.Facts.Flapping }

// Hostname returns the machine's own hostname, "" if unknown.
func (n *Node) Hostname() string { return n.Facts.Hostname }

// Labelled returns the value of a label, and whether the facts have the label.
func (n *Node) Labelled(label string) (value string, has bool) {
	value, has = n.Facts.Labels[label]
	return value, has
}

// isFinished reports whether the node is in state Purged or Gone.
func (n *Node) isFinished() bool { return n.State == Purged || n.State == Gone }

// of returns the data of a thing that is a node.
func of(t *fsm.Thing) *Node { return t.Data.(*Node) }

// Of returns the node with this UID, or nil.
func Of(s *fsm.State, uid string) *Node {
	t := s.Things[uid]
	if t == nil || t.Machine() != Machine {
		return nil
	}
	return of(t)
}

// All yields every node, in no order.
func All(s *fsm.State) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, t := range s.Things {
			if n, is := t.Data.(*Node); is && !yield(n) {
				return
			}
		}
	}
}

// ByName returns the nodes with this name: first the present node, then nodes with an open action, then the others. In
// each group, the node that was observed last comes first.
func ByName(s *fsm.State, name string) []*Node {
	var nodes []*Node
	for _, uid := range s.Named(Machine, name) {
		if n := Of(s, uid); n != nil {
			nodes = append(nodes, n)
		}
	}
	rank := func(n *Node) int {
		switch {
		case n.Present():
			return 0
		case s.HasOpen(n.UID):
			return 1
		}
		return 2
	}
	slices.SortFunc(nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.FactsSeq, a.FactsSeq), cmp.Compare(a.UID, b.UID))
	})
	return nodes
}

// Known returns copies of all nodes, sorted by name. They share no memory with the state.
func Known(s *fsm.State) []Node {
	nodes := make([]Node, 0, len(s.Things))
	for n := range All(s) {
		clone, thing := *n, *n.Thing
		thing.Data, thing.Last, thing.Contests = nil, maps.Clone(thing.Last), maps.Clone(thing.Contests)
		thing.Failed = maps.Clone(thing.Failed)
		clone.Thing = &thing
		clone.Outlived = slices.Clone(n.Outlived)
		clone.Pods = make(map[string]*Pod, len(n.Pods))
		for uid, pod := range n.Pods {
			podClone := *pod
			clone.Pods[uid] = &podClone
		}
		nodes = append(nodes, clone)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
	return nodes
}

// openClearOf returns the id of the open clear-node that must free the pod, or "". There can be one when EKCO first
// sees the pod, if the action was adopted before that.
func openClearOf(s *fsm.State, nodeUID, podUID string) string {
	found := ""
	for id, rec := range s.Actions {
		if rec.Kind != journal.ActionClearNode || rec.Subject.UID != nodeUID || (found != "" && id > found) {
			continue
		}
		if slices.ContainsFunc(journal.ClearInputOf(rec.Request).Pods, func(p journal.PodRef) bool { return p.UID == podUID }) {
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
