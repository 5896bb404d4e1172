package rookpods

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The minimum numbers of nodes with which EKCO sets the resources of the CSI pods, and spreads the MDS.
const (
	nodesForCSI = 3
	nodesForMDS = 2
)

// wish is a change that EKCO wants.
type wish struct {
	input journal.RookPodsInput
	// why is the reason for people. change is the change in the request; see [fsm.Contest].
	why    string
	change journal.Change
}

// wantedChange returns the change that EKCO wants, and false if it wants none. EKCO may have to wait before it makes
// the change.
func wantedChange(t *fsm.Thing, w *fsm.World) (wish, bool) {
	p, kind := policy(w.PolicyOf(Machine)), kindOf(t.Subject)
	if !t.Exists() || p.offSetting(kind) != "" {
		return wish{}, false
	}
	switch kind {
	case journal.ActionSetCSIResources:
		return wishCSI(t, w)
	case journal.ActionSpreadMDS:
		return wishMDS(t, w)
	}
	return wishPriority(t, w, p.Class)
}

// wishCSI returns the change that sets EKCO's resources for the pods of Ceph's CSI drivers. Nodes that are not ready
// count too, because they also have such pods.
func wishCSI(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, _ := w.Count(nodes)
	keys := newestFacts(t).Differing
	if count < nodesForCSI || len(keys) == 0 {
		return wish{}, false
	}
	return wish{
		input: journal.RookPodsInput{Keys: keys, Nodes: nodesForCSI},
		why:   fmt.Sprintf("the cluster has %s, and these resources of Ceph's CSI pods differ from EKCO's: %s", words.Count(count, "node"), strings.Join(keys, ", ")),
		// There is one contest for all keys and values, because a single program would undo all of them.
		change: journal.Change{Key: "csi", Field: "the resources of Ceph's CSI pods in " + t.Kind + " " + t.Name, From: "others", To: "EKCO's"},
	}, true
}

// wishMDS returns the change that makes the MDS run on different hosts. Only ready nodes count: after the change two
// MDS must not share a host, and an MDS can only start on a ready node.
func wishMDS(t *fsm.Thing, w *fsm.World) (wish, bool) {
	_, ready := w.Count(nodes)
	if ready < nodesForMDS || !newestFacts(t).OneNode {
		return wish{}, false
	}
	return wish{
		input:  journal.RookPodsInput{Nodes: nodesForMDS},
		why:    fmt.Sprintf("%d nodes are ready, but the MDS are placed as on a single node, so both may be lost with one host", ready),
		change: journal.Change{Key: "placement", Field: "the placement of the MDS of " + filesystem(t.Subject), From: "that for a single node", To: "different hosts"},
	}, true
}

func filesystem(mds journal.Subject) string {
	return journal.KindCephFilesystem + " rook-ceph/" + journal.MDSFilesystem(mds)
}

// wishPriority returns the change that sets the priority class of a workload's pods, if they have none. It changes the
// Deployments of one type of daemon one after the other.
func wishPriority(t *fsm.Thing, w *fsm.World, class string) (wish, bool) {
	facts := newestFacts(t)
	if class == "" || facts.Priority != "" || !isFirst(t, facts.Daemon, w) {
		return wish{}, false
	}
	return wish{
		input:  journal.RookPodsInput{Class: class, Daemon: facts.Daemon},
		why:    fmt.Sprintf("rook_priority_class is %s, but its pods have no priority class", class),
		change: journal.Change{Key: "priority", Field: "the priority class of " + t.Kind + " " + t.Name, To: class},
	}, true
}

// isFirst reports whether the thing is the next one to change among the workloads of the same type of daemon: the one
// that is being changed, or else the first one by name without a priority class.
func isFirst(t *fsm.Thing, daemon string, w *fsm.World) bool {
	for _, others := range w.ByName(Machine) {
		for _, other := range others {
			if other == t || other.Kind != t.Kind || !other.Exists() || of(other).Facts.Daemon != daemon {
				continue
			}
			if isOpen(other, w) || !isOpen(t, w) && newestFacts(other).Priority == "" && cmp.Compare(other.Name, t.Name) < 0 {
				return false
			}
		}
	}
	return true
}
