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
// others than those that are listed. What is listed stays.
func wishNodes(t *fsm.Thing, w *fsm.World) (wish, bool) {
	if t.Kind != journal.RookCluster.Kind || policyOf(w).UserManaged {
		return wish{}, false
	}
	storage := of(t).Now().Storage
	if storage == nil || storage.Claims {
		return wish{}, false
	}
	missing := missingNodes(storage, w)
	if len(missing) == 0 {
		return wish{}, false
	}
	why := readyNodes(missing) + " and not listed, so that Ceph does not use " + map[bool]string{true: "it", false: "them"}[len(missing) == 1]
	if storage.AllNodes {
		why = "Ceph uses whatever nodes there are, and shall use those that are listed; " + readyNodes(missing)
	}
	return wish{
		kind: journal.ActionAddStorageNodes, change: journal.RookChange{Nodes: missing}, why: why,
		field: "the storage nodes of " + t.Kind + " " + t.Name, from: listed(storage), to: names(missing),
	}, true
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

// missingNodes returns the nodes that are to be listed, in order of their names.
func missingNodes(storage *journal.RookStorage, w *fsm.World) []journal.RookNode {
	var missing []journal.RookNode
	for t, ready := range w.Members(nodes) {
		node := journal.RookNode{Name: t.Name, UID: t.UID, Hostname: hostname(t)}
		if ready && stores(t, policyOf(w)) && !storage.Lists(node.Hostname) && !storage.Lists(node.Name) && !isPurged(t, w) {
			missing = append(missing, node)
		}
	}
	slices.SortFunc(missing, func(a, b journal.RookNode) int { return strings.Compare(a.Name, b.Name) })
	return missing
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

// outdatedNodes says why nodes are not to be listed any more, or "".
func outdatedNodes(change journal.RookChange, w *fsm.World) string {
	p := policyOf(w)
	if len(change.Nodes) > 0 && p.UserManaged {
		return "the list of storage nodes is somebody else's: rook_storage_nodes is set"
	}
	for _, node := range change.Nodes {
		switch t := w.Things[node.UID]; {
		case t == nil || t.GoneSeq != 0:
			return "node " + node.Name + " is gone"
		case isPurged(t, w):
			return "node " + node.Name + " is being purged"
		case !stores(t, p):
			return fmt.Sprintf("node %s has no label %s=%s any more", node.Name, p.Label, p.Value)
		}
	}
	return ""
}
