package rookpods

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The number of nodes from which on EKCO sets the resources of the CSI pods, and spreads the MDS.
const (
	nodesForCSI = 3
	nodesForMDS = 2
)

// wish is a change that EKCO wants.
type wish struct {
	input journal.RookPodsInput
	// why is the reason for people, change is what another program may undo.
	why    string
	change journal.Change
}

// wished returns the change that EKCO wants, whether or not it may make it now.
func wished(t *fsm.Thing, w *fsm.World) (wish, bool) {
	p, kind := policy(w.PolicyOf(Machine)), kindOf(t.Subject)
	if !t.Exists() || p.off(kind) != "" {
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

// wishCSI asks that the pods of Ceph's CSI drivers have EKCO's resources. All nodes count: one that is not ready also
// has such pods.
func wishCSI(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, _ := w.Count(nodes)
	keys := now(t).Differing
	if count < nodesForCSI || len(keys) == 0 {
		return wish{}, false
	}
	return wish{
		input: journal.RookPodsInput{Keys: keys, Nodes: nodesForCSI},
		why:   fmt.Sprintf("there are %s, and the resources of Ceph's CSI pods are not EKCO's: %s", words.Count(count, "node"), strings.Join(keys, ", ")),
		// One contest for all keys and values: the other program is the same.
		change: journal.Change{Key: "csi", Field: "the resources of Ceph's CSI pods in " + t.Kind + " " + t.Name, From: "others", To: "EKCO's"},
	}, true
}

// wishMDS asks that the MDS run on different hosts. Only ready nodes count: no MDS would start on another one, and two
// of them may not share a host.
func wishMDS(t *fsm.Thing, w *fsm.World) (wish, bool) {
	_, ready := w.Count(nodes)
	if ready < nodesForMDS || !now(t).OneNode {
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

// wishPriority asks for the priority class if a workload's pods have none. Of the Deployments of one daemon it changes
// only the first without one.
func wishPriority(t *fsm.Thing, w *fsm.World, class string) (wish, bool) {
	facts := now(t)
	if class == "" || facts.Priority != "" || !isFirst(t, facts.Daemon, w) {
		return wish{}, false
	}
	return wish{
		input:  journal.RookPodsInput{Class: class, Daemon: facts.Daemon},
		why:    fmt.Sprintf("rook_priority_class is %s, but its pods have no priority class", class),
		change: journal.Change{Key: "priority", Field: "the priority class of " + t.Kind + " " + t.Name, To: class},
	}, true
}

// isFirst reports whether it is the thing's turn among those of the same daemon: that of the one that is being changed,
// otherwise of the first by name without a priority class.
func isFirst(t *fsm.Thing, daemon string, w *fsm.World) bool {
	for _, others := range w.ByName(Machine) {
		for _, other := range others {
			if other == t || other.Kind != t.Kind || !other.Exists() || of(other).Facts.Daemon != daemon {
				continue
			}
			if isOpen(other, w) || !isOpen(t, w) && now(other).Priority == "" && cmp.Compare(other.Name, t.Name) < 0 {
				return false
			}
		}
	}
	return true
}
