package fsm

import (
	"fmt"
	"slices"
	"time"

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

// transition drafts the event of one transition of the node's machine.
func transition(v *view, n *Node, from journal.NodeState, step *Transition) journal.Draft {
	told := step.told(n, from, v.now)
	return journal.Draft{
		Type: journal.TypeNodeTransitioned, Subject: n.Subject(), Cause: told.cause, Actor: ActorOperator,
		Payload: journal.NodeTransitioned{
			From: from, To: journal.NodeState(step.To), Event: step.Event, Since: told.since, Reason: told.reason,
		},
	}
}

func toldLost(n *Node, _ journal.NodeState, now time.Time) telling {
	told := telling{reason: "the node has the taint " + journal.TaintUnreachable, since: n.UnreachableSince, cause: n.FactsSeq}
	if told.since.After(now) {
		told.since = now
	}
	if !n.Observed() {
		told.reason = "an adopted action says that the node was lost"
	}
	return told
}

func toldReturned(n *Node, _ journal.NodeState, _ time.Time) telling {
	return telling{reason: "the node no longer has the taint " + journal.TaintUnreachable, cause: n.FactsSeq}
}

// toldOpen is for what follows from the actions that are open, and has no one cause.
func toldOpen(reason string) func(*Node, journal.NodeState, time.Time) telling {
	return func(*Node, journal.NodeState, time.Time) telling { return telling{reason: reason} }
}

func toldPurged(n *Node, _ journal.NodeState, _ time.Time) telling {
	return telling{reason: fmt.Sprintf("%s is %s", n.LastPurge.Action, n.LastPurge.Outcome), cause: n.LastPurge.Seq}
}

func toldStopped(n *Node, from journal.NodeState, _ time.Time) telling {
	told := telling{reason: stopReason(n, from), since: n.UnreachableSince}
	if from == Purging && n.LastPurge != nil {
		told.cause = n.LastPurge.Seq
	}
	return told
}

func toldGone(n *Node, _ journal.NodeState, _ time.Time) telling {
	return telling{reason: goneReason(n), cause: n.GoneSeq}
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
