package node

import (
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Foresee implements [fsm.Machine]. For an unreachable node it adds the clear-node that EKCO will request if pods on
// the node are terminating then, and actions that a setting forbids.
func (machine) Foresee(t *fsm.Thing, w *fsm.World, foresee func(fsm.Upcoming)) {
	n, p := of(t), policyOf(w)
	if !n.Unreachable() || n.Facts.Flapping {
		return
	}
	switch due := nodeDue(n, p); {
	case !p.ClearDeadNodes:
		foresee(fsm.Upcoming{Kind: journal.ActionClearNode, Never: true, Why: "clear_dead_nodes is false"})
	case len(n.Pods) == 0 && w.Now.Before(due):
		foresee(fsm.Upcoming{Kind: journal.ActionClearNode, At: due, Why: "if pods on it are terminating then"})
	}
	if !p.PurgeDeadNodes && !slices.ContainsFunc(w.Open(t), isPurge) {
		foresee(fsm.Upcoming{Kind: journal.ActionPurgeNode, Never: true, Why: "purge_dead_nodes is false"})
	}
}
