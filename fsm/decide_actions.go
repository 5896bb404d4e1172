package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// decideClear asks for a clear-node with all pods that are due. An earlier one
// that is still open, or an open or refused purge, does not stand in the way.
func (r *round) decideClear(plan *nodePlan) {
	n := plan.node
	if !r.policy.ClearDeadNodes || len(n.Pods) == 0 {
		return
	}
	var due []*Pod
	for _, pod := range n.Pods {
		if pod.Action != "" && !r.onlyPlayed(pod.Outcome) {
			continue
		}
		if at := r.podDue(n, pod); r.now.Before(at) {
			r.at(at)
			continue
		}
		due = append(due, pod)
	}
	if len(due) == 0 || r.refused(n, r.kind(journal.ActionClearNode)) != nil {
		return
	}
	plan.events = append(plan.events, r.requestClear(n, due))
	if plan.state != Purging && plan.state != Clearing {
		r.move(plan, Clearing)
	}
}

// onlyPlayed reports whether an outcome is that of a dry run, and this is none:
// what was only tried on is then still to be done.
func (v *view) onlyPlayed(outcome journal.Outcome) bool {
	return outcome == journal.OutcomeDryRun && !v.policy.DryRun
}

// podDue returns when the pod may be freed: its node must be lost for long
// enough, and the pod's own time must be over.
func (r *round) podDue(n *Node, pod *Pod) time.Time {
	nodeDue := n.UnreachableSince.Add(r.policy.ClearAfter)
	podDue := pod.SeenAt.Add(time.Duration(pod.Grace) + r.policy.PodGrace)
	if podDue.After(nodeDue) {
		return podDue
	}
	return nodeDue
}

func (r *round) requestClear(n *Node, due []*Pod) journal.Draft {
	slices.SortFunc(due, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	request := journal.ActionRequested{
		Kind: journal.ActionClearNode, DryRun: r.policy.DryRun,
		Reason: fmt.Sprintf("the node is unreachable since %s and %d of its pods are terminating for too long",
			stamp(n.UnreachableSince), len(due)),
	}
	cause := n.FactsSeq
	for _, pod := range due {
		cause = max(cause, pod.Seq)
		request.Pods = append(request.Pods, journal.PodRef{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, DeletionTimestamp: pod.DeletionTimestamp,
		})
	}
	return journal.Draft{
		Type: journal.TypeActionRequested, Subject: n.Subject(), Action: r.actionID(journal.ActionClearNode, n),
		Cause: cause, Actor: ActorOperator, Payload: request,
	}
}

// mayPurge reports whether the node is lost for long enough to be purged, and
// no rule is against it.
func (r *round) mayPurge(n *Node, open work) bool {
	if !r.policy.PurgeDeadNodes || len(open.purges) > 0 {
		return false
	}
	if at := n.UnreachableSince.Add(r.policy.PurgeAfter); r.now.Before(at) {
		r.at(at)
		return false
	}
	return r.refused(n, r.kind(journal.ActionPurgeNode)) == nil
}

// choosePurge asks for the purge of the candidate that is lost for longest.
// The others must wait for it.
func (r *round) choosePurge() {
	if len(r.candidates) == 0 {
		return
	}
	chosen := slices.MinFunc(r.candidates, func(a, b *nodePlan) int {
		return cmp.Or(a.node.UnreachableSince.Compare(b.node.UnreachableSince), compareNodes(a.node, b.node))
	})
	n := chosen.node
	id := r.actionID(journal.ActionPurgeNode, n)
	chosen.events = append(chosen.events, journal.Draft{
		Type: journal.TypeActionRequested, Subject: n.Subject(), Action: id, Cause: n.FactsSeq, Actor: ActorOperator,
		Payload: journal.ActionRequested{
			Kind: journal.ActionPurgeNode, DryRun: r.policy.DryRun,
			Reason: "the node is unreachable since " + stamp(n.UnreachableSince),
			Node:   n.lastFacts(),
		},
	})
	r.move(chosen, Purging)
	r.first[journal.ActionPurgeNode] = &journal.ActionRecord{ID: id, Kind: journal.ActionPurgeNode}
	for _, plan := range r.candidates {
		if plan != chosen {
			r.refused(plan.node, r.kind(journal.ActionPurgeNode))
		}
		if len(plan.events) > 0 {
			r.plans = append(r.plans, plan)
		}
	}
}
