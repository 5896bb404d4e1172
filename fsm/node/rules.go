package node

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The rules that only actions about nodes obey.
const (
	RuleExcluded      = "Excluded"
	RuleStormBrake    = "StormBrake"
	RuleReadyMinimums = "ReadyMinimums"
	// RuleTriedBefore: the last purge of the node was a dry run or was cancelled.
	RuleTriedBefore = "TriedBefore"
	// RuleReplaced refuses a person's request if the name now belongs to another node than the one that the person saw.
	RuleReplaced = fsm.RuleReplaced
)

func rules() []fsm.Rule {
	return []fsm.Rule{
		{
			Name: RuleExcluded,
			// If the Node no longer exists, the label cannot be removed, so the rule must not refuse.
			Refuses: func(_ *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool {
				n := of(t)
				return n.Present() && n.Facts.Excluded
			},
			Reason: func(*fsm.World, *fsm.Thing, *fsm.ActionKind) string {
				return "the node has the label ekco.kurl.sh/exclude"
			},
			Lifted: fsm.Always("EKCO acts on it when the label is removed"),
		},
		{
			Name: RuleStormBrake, Cluster: true,
			Refuses: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) bool {
				c := countsOf(w.State)
				return c.unreachable > policyOf(w).MaxUnknown.Limit(c.total)
			},
			Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
				c, limit := countsOf(w.State), policyOf(w).MaxUnknown
				return fmt.Sprintf("%d of %d nodes are unreachable and max_unknown_nodes (%s) allows %d",
					c.unreachable, c.total, limit, limit.Limit(c.total))
			},
			Lifted: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
				c := countsOf(w.State)
				return continuesWhen(c.unreachable-policyOf(w).MaxUnknown.Limit(c.total), "is back", "are back")
			},
		},
		{
			Name: RuleReadyMinimums,
			Refuses: func(w *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool {
				n := of(t)
				return countsOf(w.State).readyWithout(n) < policyOf(w).minReady(n.Facts.Role)
			},
			Reason: func(w *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) string {
				n := of(t)
				return fmt.Sprintf("without the node %d %s nodes are ready, the minimum is %d",
					countsOf(w.State).readyWithout(n), n.Facts.Role, policyOf(w).minReady(n.Facts.Role))
			},
			Lifted: func(w *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) string {
				n := of(t)
				return continuesWhen(policyOf(w).minReady(n.Facts.Role)-countsOf(w.State).readyWithout(n), "is ready", "are ready")
			},
		},
		{
			Name: RuleTriedBefore, ToBegin: true,
			Refuses: func(w *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool { return purgeTried(w, of(t)) },
			Reason: func(_ *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) string {
				last := of(t).lastPurge()
				return fmt.Sprintf("%s ended as %s; EKCO purges the node automatically only after it was healthy again; to purge it now: ekco purge-node %s",
					last.Action, last.Outcome, t.Name)
			},
		},
	}
}

// purgeTried reports whether EKCO must not purge the node automatically again: the last purge was cancelled, or it was
// a dry run and another one would be a dry run too.
func purgeTried(w *fsm.World, n *Node) bool {
	last := n.lastPurge()
	return last != nil && !onlyDryRun(w, last.Outcome) &&
		(last.Outcome == journal.OutcomeDryRun || last.Outcome == journal.OutcomeCancelled)
}

// continuesWhen returns a text that says for how many more nodes EKCO waits. isSo and areSo are the ends of the
// sentence for one node and for several.
func continuesWhen(more int, isSo, areSo string) string {
	return "EKCO continues when " + words.CountOf(more, "more node "+isSo, "more nodes "+areSo)
}
