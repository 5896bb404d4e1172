package rook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// wishNodes asks that Ceph may use all nodes that are ready and have the label, and no
// others than those that are listed. What is listed stays, and what has OSDs is listed: Rook
// before 1.4 removes those of hosts that a list leaves out.
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
	asked := wish{kind: journal.ActionAddStorageNodes, field: "the storage nodes of " + t.Kind + " " + t.Name, from: listed(storage), seen: seen}
	missing = asked.uncontested(t, missing, w)
	if len(missing) == 0 {
		return wish{}, false
	}
	asked.why = readyNodes(missing) + " but not listed, so Ceph does not use " + map[bool]string{true: "it", false: "them"}[len(missing) == 1]
	asked.to, asked.parts = names(missing), parts(missing)
	asked.change = journal.RookChange{Nodes: missing, Label: p.label(), Whole: storage.AllNodes}
	if storage.AllNodes {
		asked.why = "Ceph uses all nodes, and should use only listed ones; " + readyNodes(missing)
		asked.change.Nodes = slices.Concat(missing, occupiedNodes(missing, w))
		asked.to, asked.parts = names(asked.change.Nodes), nil
	}
	return asked, true
}

// uncontested returns the nodes that nobody takes off the list again and again; all of them if
// there are no others, so that it is told why they wait.
func (asked wish) uncontested(t *fsm.Thing, missing []journal.RookNode, w *fsm.World) []journal.RookNode {
	free := slices.DeleteFunc(slices.Clone(missing), func(node journal.RookNode) bool {
		asked.parts = parts([]journal.RookNode{node})
		return w.Contested(t, asked.contest())
	})
	if len(free) == 0 {
		return missing
	}
	return free
}

// parts are the nodes, each of which somebody may take off the list. One that was purged, and
// joins again, is another one.
func parts(nodes []journal.RookNode) []string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = node.UID
	}
	return texts
}

// listed says which nodes Ceph may use without those that are to be added.
func listed(storage *journal.RookStorage) string {
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

// missingNodes returns the nodes that are to be listed, in order of their names, and the newest
// event that told of one.
func missingNodes(storage *journal.RookStorage, w *fsm.World) (missing []journal.RookNode, seen uint64) {
	listed := map[string]bool{}
	if !storage.AllNodes {
		for _, name := range storage.Nodes {
			listed[name] = true
		}
	}
	for t, ready := range w.Members(nodes) {
		node := rookNode(t)
		if ready && stores(t, policyOf(w)) && !listed[node.Hostname] && !listed[node.Name] && !isPurged(t, w) {
			missing, seen = append(missing, node), max(seen, t.FactsSeq)
		}
	}
	byName(missing)
	return missing, seen
}

func rookNode(t *fsm.Thing) journal.RookNode {
	return journal.RookNode{Name: t.Name, UID: t.UID, Hostname: hostname(t)}
}

func byName(nodes []journal.RookNode) {
	slices.SortFunc(nodes, func(a, b journal.RookNode) int { return strings.Compare(a.Name, b.Name) })
}

// occupiedNodes returns the nodes besides those that have OSDs, ready or not, in order of their
// names. One that is being purged is none of them.
func occupiedNodes(besides []journal.RookNode, w *fsm.World) (occupied []journal.RookNode) {
	known := map[string]bool{}
	for _, node := range besides {
		known[node.UID] = true
	}
	machines := machinesOf(w)
	said, _ := saidByCeph(w)
	if said == nil {
		return nil
	}
	for _, host := range said.Occupied {
		t := machines[journal.CrushName(host)]
		if t == nil || known[t.UID] || isPurged(t, w) {
			continue
		}
		known[t.UID] = true
		node := rookNode(t)
		node.Occupied = true
		occupied = append(occupied, node)
	}
	byName(occupied)
	return occupied
}

// machinesOf returns the nodes that exist by what Rook may call them in the CRUSH map.
func machinesOf(w *fsm.World) map[string]*fsm.Thing {
	machines := map[string]*fsm.Thing{}
	for t := range w.Members(nodes) {
		machines[journal.CrushName(t.Name)], machines[journal.CrushName(hostname(t))] = t, t
	}
	return machines
}

// unnamed says why a list that takes the place of all nodes would leave out a host with OSDs, or
// "".
func unnamed(w *fsm.World) string {
	said, _ := saidByCeph(w)
	if said == nil {
		return "Ceph has not reported yet which hosts have OSDs"
	}
	machines := machinesOf(w)
	for _, host := range said.Occupied {
		switch t := machines[journal.CrushName(host)]; {
		case t == nil:
			return "host " + host + " has OSDs, but is not a node of the cluster"
		case isPurged(t, w):
			return "node " + t.Name + " has OSDs, and is being purged"
		}
	}
	return ""
}

// stores reports whether the node has the label of storage nodes.
func stores(t *fsm.Thing, p Policy) bool {
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

// isPurged reports whether somebody asked that the node be removed.
func isPurged(t *fsm.Thing, w *fsm.World) bool {
	return slices.ContainsFunc(w.Open(t), isPurge)
}

func isPurge(rec *journal.ActionRecord) bool {
	return rec.Kind == journal.ActionPurgeNode && !rec.Request.DryRun
}

// label is what a node must have, as key=value, "" for nothing.
func (p Policy) label() string {
	if p.Label == "" {
		return ""
	}
	return p.Label + "=" + p.Value
}

// purgedSince says which node that is to be listed somebody asked to be removed since, or "". It
// is the one reason for which also what has begun is not tried again: the purge takes off the
// list what has come that far.
func purgedSince(change journal.RookChange, w *fsm.World) string {
	for _, node := range change.Nodes {
		if t := w.Things[node.UID]; t != nil && isPurged(t, w) {
			return "node " + node.Name + " is being purged"
		}
	}
	return ""
}

// outdatedNodes says why nodes are not to be listed any more, or "".
func outdatedNodes(change journal.RookChange, w *fsm.World) string {
	p := policyOf(w)
	if len(change.Nodes) > 0 && p.UserManaged {
		return "an administrator manages the list of storage nodes: rook_storage_nodes is set"
	}
	for _, node := range change.Nodes {
		switch t := w.Things[node.UID]; {
		case t == nil || t.GoneSeq != 0:
			return "node " + node.Name + " is gone"
		case isPurged(t, w):
			return "node " + node.Name + " is being purged"
		case !stores(t, p) && !node.Occupied:
			return fmt.Sprintf("node %s no longer has label %s=%s", node.Name, p.Label, p.Value)
		}
	}
	return ""
}
