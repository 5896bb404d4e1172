package rook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// wishNodes returns the change that adds all ready nodes with the label to the list of storage nodes. It removes no
// node from the list. If Ceph uses all nodes, a list replaces that setting; it has all nodes with OSDs, because Rook
// before 1.4 removes the OSDs of hosts that are not in the list.
func wishNodes(t *fsm.Thing, w *fsm.World) (wish, bool) {
	p := policyOf(w)
	if t.Kind != journal.RookCluster.Kind || p.UserManaged {
		return wish{}, false
	}
	storage := of(t).Now().Storage
	if storage == nil || storage.Claims {
		return wish{}, false
	}
	missing, seen := missingNodes(storage, w)
	asked := wish{kind: journal.ActionAddStorageNodes, field: "the storage nodes of " + t.Kind + " " + t.Name, from: listedText(storage), seen: seen}
	missing = asked.uncontestedNodes(t, missing, w)
	if len(missing) == 0 {
		return wish{}, false
	}
	asked.why = readyNodes(missing) + " but not listed, so Ceph does not use " + map[bool]string{true: "it", false: "them"}[len(missing) == 1]
	asked.to, asked.parts = names(missing), nodeUIDs(missing)
	asked.change = journal.RookChange{Nodes: missing, Label: p.label(), Whole: storage.AllNodes}
	if storage.AllNodes {
		asked.why = "Ceph uses all nodes, and should use only listed ones; " + readyNodes(missing)
		asked.change.Nodes = slices.Concat(missing, occupiedNodes(missing, w))
		asked.to, asked.parts = names(asked.change.Nodes), nil
	}
	return asked, true
}

// uncontestedNodes returns the missing nodes except those that another program keeps removing from the list. If that
// program removes all of them, it returns all, so that EKCO reports why they wait.
func (asked wish) uncontestedNodes(t *fsm.Thing, missing []journal.RookNode, w *fsm.World) []journal.RookNode {
	free := slices.DeleteFunc(slices.Clone(missing), func(node journal.RookNode) bool {
		asked.parts = nodeUIDs([]journal.RookNode{node})
		return w.Contested(t, asked.contest())
	})
	if len(free) == 0 {
		return missing
	}
	return free
}

// nodeUIDs returns [journal.Change.Parts] for a change that lists these nodes. It uses UIDs, because a node that was
// purged and joins again is another node.
func nodeUIDs(nodes []journal.RookNode) []string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = node.UID
	}
	return texts
}

// listedText returns a text that says which nodes Ceph may use before the change.
func listedText(storage *journal.RookStorage) string {
	if storage.AllNodes {
		return "all nodes"
	}
	return words.Count(len(storage.Nodes), "other node")
}

func readyNodes(nodes []journal.RookNode) string {
	if len(nodes) == 1 {
		return "node " + nodes[0].Name + " is ready"
	}
	return words.Count(len(nodes), "node") + " are ready (" + names(nodes) + ")"
}

func names(nodes []journal.RookNode) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = node.Name
	}
	return strings.Join(texts, ", ")
}

// missingNodes returns the nodes to add to the list, sorted by name, and the newest event with facts about one of them.
func missingNodes(storage *journal.RookStorage, w *fsm.World) (missing []journal.RookNode, seen uint64) {
	listed := map[string]bool{}
	if !storage.AllNodes {
		for _, name := range storage.Nodes {
			listed[name] = true
		}
	}
	for t, ready := range w.Members(nodeMachine) {
		node := rookNode(t)
		if ready && hasStorageLabel(t, policyOf(w)) && !listed[node.Hostname] && !listed[node.Name] && !isBeingPurged(t, w) {
			missing, seen = append(missing, node), max(seen, t.FactsSeq)
		}
	}
	sortByName(missing)
	return missing, seen
}

func rookNode(t *fsm.Thing) journal.RookNode {
	return journal.RookNode{Name: t.Name, UID: t.UID, Hostname: hostname(t)}
}

func sortByName(nodes []journal.RookNode) {
	slices.SortFunc(nodes, func(a, b journal.RookNode) int { return strings.Compare(a.Name, b.Name) })
}

// occupiedNodes returns the nodes that have OSDs and are not in besides, ready or not, sorted by name. It leaves out
// nodes that are being purged.
func occupiedNodes(besides []journal.RookNode, w *fsm.World) (occupied []journal.RookNode) {
	known := map[string]bool{}
	for _, node := range besides {
		known[node.UID] = true
	}
	hosts := nodesByCrushName(w)
	reported, _ := cephFacts(w)
	if reported == nil {
		return nil
	}
	for _, host := range reported.Occupied {
		t := hosts[journal.CrushName(host)]
		if t == nil || known[t.UID] || isBeingPurged(t, w) {
			continue
		}
		known[t.UID] = true
		node := rookNode(t)
		node.Occupied = true
		occupied = append(occupied, node)
	}
	sortByName(occupied)
	return occupied
}

// nodesByCrushName returns the existing nodes by each name that Rook may give them in the CRUSH map.
func nodesByCrushName(w *fsm.World) map[string]*fsm.Thing {
	hosts := map[string]*fsm.Thing{}
	for t := range w.Members(nodeMachine) {
		hosts[journal.CrushName(t.Name)], hosts[journal.CrushName(hostname(t))] = t, t
	}
	return hosts
}

// unlistedHost returns why the list of nodes would lack a host with OSDs, or "".
func unlistedHost(w *fsm.World) string {
	reported, _ := cephFacts(w)
	if reported == nil {
		return "Ceph has not reported yet which hosts have OSDs"
	}
	hosts := nodesByCrushName(w)
	for _, host := range reported.Occupied {
		switch t := hosts[journal.CrushName(host)]; {
		case t == nil:
			return "host " + host + " has OSDs, but is not a node of the cluster"
		case isBeingPurged(t, w):
			return "node " + t.Name + " has OSDs, and is being purged"
		}
	}
	return ""
}

// hasStorageLabel reports whether the node has the label that storage nodes must have, or no label is required.
func hasStorageLabel(t *fsm.Thing, p Policy) bool {
	if p.Label == "" {
		return true
	}
	node, known := t.Data.(host)
	if !known {
		return false
	}
	value, has := node.Labelled(p.Label)
	return has && value == p.Value
}

// isBeingPurged reports whether a purge of the node is open.
func isBeingPurged(t *fsm.Thing, w *fsm.World) bool {
	return slices.ContainsFunc(w.Open(t), isPurge)
}

func isPurge(rec *journal.ActionRecord) bool {
	return rec.Kind == journal.ActionPurgeNode && !rec.Request.DryRun
}

// label returns the label that a storage node must have, as key=value, or "".
func (p Policy) label() string {
	if p.Label == "" {
		return ""
	}
	return p.Label + "=" + p.Value
}

// purgedSince returns the message that one of the nodes to list is being purged now, or "". This is the only reason for
// which EKCO stops an action that has begun, because the purge removes the node from the list again.
func purgedSince(change journal.RookChange, w *fsm.World) string {
	for _, node := range change.Nodes {
		if t := w.Things[node.UID]; t != nil && isBeingPurged(t, w) {
			return "node " + node.Name + " is being purged"
		}
	}
	return ""
}

// outdatedNodes returns why EKCO must no longer add these nodes to the list, or "".
func outdatedNodes(change journal.RookChange, w *fsm.World) string {
	p := policyOf(w)
	if len(change.Nodes) > 0 && p.UserManaged {
		return "an administrator manages the list of storage nodes: rook_storage_nodes is set"
	}
	for _, node := range change.Nodes {
		switch t := w.Things[node.UID]; {
		case t == nil || t.GoneSeq != 0:
			return "node " + node.Name + " is gone"
		case isBeingPurged(t, w):
			return "node " + node.Name + " is being purged"
		case !hasStorageLabel(t, p) && !node.Occupied:
			return fmt.Sprintf("node %s no longer has label %s=%s", node.Name, p.Label, p.Value)
		}
	}
	return ""
}
