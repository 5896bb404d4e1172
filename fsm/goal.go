package fsm

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// work is what is open on one node.
type work struct {
	purges []*journal.ActionRecord
	clears int
}

// obsolete says why an action has lost its reason, or "" if it has not: the
// node answers again, is gone, or is another one now. An action past its point
// of no return never loses it, nor does one that may be past it in an event
// that cannot be read.
func obsolete(n *Node, rec *journal.ActionRecord) string {
	manualPurge := rec.Kind == journal.ActionPurgeNode && rec.Request.Manual
	switch {
	case rec.PastNoReturn, rec.Unreadable != "":
		return ""
	case n.ReplacedBy != "":
		return "another node has the name now, with uid " + n.ReplacedBy
	case !n.GoneAt.IsZero() && manualPurge:
		return "" // what is left of the node must go too
	case !n.GoneAt.IsZero():
		return "the Node object is gone: " + n.GoneReason
	case !n.Observed() || rec.Request.Live:
		return ""
	case n.Facts.Flapping:
		return "the node comes and goes"
	case !n.UnreachableSince.IsZero() && slices.Contains(n.Outlived, rec.ID):
		return "the node was back meanwhile, and how long it is lost counts anew"
	case !n.UnreachableSince.IsZero():
		return ""
	}
	return "the node answers again"
}

// goal is the state the node's machine belongs in, given its facts and what is
// open on it, when it is in state now.
func goal(n *Node, now journal.NodeState, open work) journal.NodeState {
	switch {
	case now == Purged || n.purged():
		return Purged
	case purging(n, open):
		return Purging
	case !n.GoneAt.IsZero():
		return Gone
	case !n.Observed() && open.clears == 0:
		return Unknown
	case n.Observed() && n.UnreachableSince.IsZero():
		return Healthy
	case open.clears > 0:
		return Clearing
	case now == Clearing && len(n.Pods) == 0:
		return Cleared
	case now == Clearing && n.backsOff():
		return Unknown
	case (now == Clearing && n.podsToCome()) || now == Cleared:
		return now
	}
	return Unknown
}

// purged reports whether a purge removed the node.
func (n *Node) purged() bool {
	if n.LastPurge == nil {
		return false
	}
	superseded := n.LastPurge.Outcome == journal.OutcomeSuperseded && !n.GoneAt.IsZero()
	return n.LastPurge.Outcome == journal.OutcomeDone || superseded
}

func purging(n *Node, open work) bool {
	for _, rec := range open.purges {
		if obsolete(n, rec) == "" {
			return true
		}
	}
	return false
}

// podsToCome reports whether any terminating pod is still to be freed, or was
// freed and is about to disappear.
func (n *Node) podsToCome() bool {
	for _, pod := range n.Pods {
		left := pod.Outcome == journal.OutcomeDryRun || pod.Outcome == journal.OutcomeCancelled
		if !left {
			return true
		}
	}
	return false
}

// hop returns the first step of the machine from one state towards another.
func hop(from, to journal.NodeState) (event string, next journal.NodeState) {
	switch to {
	case Healthy:
		return nodeReturned, Healthy
	case Unknown:
		if from == Healthy || from == Gone {
			return nodeLost, Unknown
		}
		return nodeStopped, Unknown
	case Clearing:
		if from == Healthy || from == Gone {
			return nodeLost, Unknown
		}
		return nodeClear, Clearing
	case Cleared:
		return nodeCleared, Cleared
	case Purged:
		if from == Purging {
			return nodePurged, Purged
		}
		return nodePurge, Purging
	case Purging:
		return nodePurge, Purging
	}
	return nodeGone, Gone
}

// transition drafts one step of the node's machine.
func transition(v *view, n *Node, from, to journal.NodeState, event string) journal.Draft {
	p := journal.NodeTransitioned{From: from, To: to, Event: event}
	cause := n.FactsSeq
	switch event {
	case nodeLost:
		p.Since = n.UnreachableSince
		if p.Since.After(v.now) {
			p.Since = v.now
		}
		p.Reason = "the node has the taint " + journal.TaintUnreachable
		if !n.Observed() {
			p.Reason = "an adopted action says that the node was lost"
		}
	case nodeReturned:
		p.Reason = "the node no longer has the taint " + journal.TaintUnreachable
	case nodeClear:
		p.Reason, cause = "a clear-node action is open", 0
	case nodeCleared:
		p.Reason, cause = "no terminating pod is left", 0
	case nodePurge:
		p.Reason, cause = "a purge-node action is open", 0
	case nodePurged:
		p.Reason, cause = fmt.Sprintf("%s is %s", n.LastPurge.Action, n.LastPurge.Outcome), n.LastPurge.Seq
	case nodeStopped:
		p.Reason, p.Since, cause = stopReason(n, from), n.UnreachableSince, 0
		if from == Purging && n.LastPurge != nil {
			cause = n.LastPurge.Seq
		}
	case nodeGone:
		p.Reason, cause = goneReason(n), n.GoneSeq
	}
	return journal.Draft{
		Type: journal.TypeNodeTransitioned, Subject: n.Subject(), Cause: cause, Actor: ActorOperator, Payload: p,
	}
}

func stopReason(n *Node, from journal.NodeState) string {
	if from == Purging && n.LastPurge != nil {
		return fmt.Sprintf("%s ended as %s", n.LastPurge.Action, n.LastPurge.Outcome)
	}
	return "the action ended and left the node as it was"
}

func goneReason(n *Node) string {
	if n.ReplacedBy != "" {
		return n.GoneReason
	}
	return "deleted by somebody else: " + n.GoneReason
}
