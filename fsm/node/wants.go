package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// wantsClear calls want with a clear-node if some of the node's pods are due, and with one for the time when the next
// pod is due. It does so even if another clear-node or a purge is open, or if a purge is refused.
func wantsClear(n *Node, w *fsm.World, want func(fsm.Want)) {
	if len(n.Pods) == 0 {
		return
	}
	p := policyOf(w)
	if !p.ClearDeadNodes {
		return
	}
	due, next, nodeDue := false, time.Time{}, nodeDue(n, p)
	for _, pod := range n.Pods {
		if pod.Action != "" && !onlyDryRun(w, pod.Outcome) {
			continue
		}
		switch at := podDue(pod, nodeDue, p); {
		case !w.Now.Before(at):
			due = true
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	if !next.IsZero() {
		want(fsm.Want{Kind: journal.ActionClearNode, Due: next})
	}
	if due {
		want(fsm.Want{Kind: journal.ActionClearNode})
	}
}

// onlyDryRun reports whether the last action was a dry run and EKCO is no longer in dry-run mode, so that a real action
// is still necessary.
func onlyDryRun(w *fsm.World, outcome journal.Outcome) bool {
	return outcome == journal.OutcomeDryRun && !w.Policy.DryRun
}

// nodeDue returns when the node has been unreachable for long enough that EKCO may free its pods.
func nodeDue(n *Node, p *Policy) time.Time { return n.UnreachableSince.Add(p.ClearAfter) }

// podDue returns when EKCO may free the pod: the node must be unreachable for long enough, and the pod's grace period
// and PodGrace must be over.
func podDue(pod *Pod, nodeDue time.Time, p *Policy) time.Time {
	podDue := pod.SeenAt.Add(time.Duration(pod.Grace) + p.PodGrace)
	if podDue.After(nodeDue) {
		return podDue
	}
	return nodeDue
}

func requestClear(n *Node, w *fsm.World) (journal.ActionRequested, uint64) {
	p := policyOf(w)
	due, nodeDue := make([]*Pod, 0, len(n.Pods)), nodeDue(n, p)
	for _, pod := range n.Pods {
		if (pod.Action == "" || onlyDryRun(w, pod.Outcome)) && !w.Now.Before(podDue(pod, nodeDue, p)) {
			due = append(due, pod)
		}
	}
	slices.SortFunc(due, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	input := journal.ClearInput{Pods: make([]journal.PodRef, 0, len(due))}
	cause := n.FactsSeq
	for _, pod := range due {
		cause = max(cause, pod.Seq)
		input.Pods = append(input.Pods, journal.PodRef{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, DeletionTimestamp: pod.DeletionTimestamp,
		})
	}
	return journal.ActionRequested{
		Reason: fmt.Sprintf("the node has been unreachable since %s and %d of its pods have been terminating for too long",
			fsm.Stamp(n.UnreachableSince), len(due)),
		Input: input,
	}, cause
}

// wantsPurge calls want with a purge of the node, unless a purge of this node is open. Of several lost nodes, the node
// that was lost first is purged first.
func wantsPurge(n *Node, w *fsm.World, want func(fsm.Want)) {
	p := policyOf(w)
	if !p.PurgeDeadNodes || slices.ContainsFunc(w.Open(n.Thing), isPurge) {
		return
	}
	want(fsm.Want{Kind: journal.ActionPurgeNode, Due: n.UnreachableSince.Add(p.PurgeAfter), Rank: n.UnreachableSince})
}

func isPurge(rec *journal.ActionRecord) bool { return rec.Kind == journal.ActionPurgeNode }

func requestPurge(n *Node) (journal.ActionRequested, uint64) {
	return journal.ActionRequested{
		Reason: "the node has been unreachable since " + fsm.Stamp(n.UnreachableSince),
		Input:  journal.PurgeInput{Node: n.lastFacts()},
	}, n.FactsSeq
}
