package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// obsoleteReason returns why an action is no longer needed, or "". Reasons are that the node answers again, no longer
// exists, or was replaced. An action past its point of no return is never obsolete. Neither is an action with an
// unreadable event, because it may be past that point.
func obsoleteReason(n *Node, rec *journal.ActionRecord) string {
	manualPurge := rec.Kind == journal.ActionPurgeNode && rec.Request.Manual
	ofLoss := rec.Kind == journal.ActionPurgeNode || rec.Kind == journal.ActionClearNode
	switch {
	case rec.PastNoReturn, rec.Unreadable != "":
		return ""
	case n.ReplacedBy != "":
		return "the name now belongs to another node, with uid " + n.ReplacedBy
	case !n.GoneAt.IsZero() && manualPurge:
		return "" // the purge must also remove the rest of the node
	case !n.GoneAt.IsZero():
		return "the Node object is gone: " + n.GoneReason
	case !ofLoss, !n.Observed(), journal.PurgeInputOf(rec.Request).Live:
		return ""
	case n.Facts.Flapping:
		return "the node is flapping"
	case !n.UnreachableSince.IsZero() && slices.Contains(n.Outlived, rec.ID):
		return "the node was back in between; the time since its loss counts from now on"
	case !n.UnreachableSince.IsZero():
		return ""
	}
	return "the node answers again"
}

// goalState returns the goal of a node in state now, according to its facts and open actions.
func goalState(n *Node, now journal.State, open []*journal.ActionRecord) journal.State {
	switch {
	case now == Purged || n.isPurged():
		return Purged
	case hasOpenPurge(n, open):
		return Purging
	case !n.GoneAt.IsZero():
		return Gone
	case !n.Observed() && !hasOpenClear(open):
		return Unknown
	case n.Observed() && n.UnreachableSince.IsZero():
		return Healthy
	case hasOpenClear(open):
		return Clearing
	case now == Clearing && len(n.Pods) == 0:
		return Cleared
	case now == Clearing && n.BacksOff(journal.ActionClearNode):
		return Unknown
	case (now == Clearing && n.hasPodsToFree()) || now == Cleared:
		return now
	}
	return Unknown
}

func hasOpenClear(open []*journal.ActionRecord) bool {
	return slices.ContainsFunc(open, func(rec *journal.ActionRecord) bool { return rec.Kind == journal.ActionClearNode })
}

// lastPurge returns the last purge that has ended since the node was last healthy, or nil.
func (n *Node) lastPurge() *fsm.Ending { return n.Last[journal.ActionPurgeNode] }

// isPurged reports whether a purge removed the node.
func (n *Node) isPurged() bool {
	last := n.lastPurge()
	if last == nil {
		return false
	}
	superseded := last.Outcome == journal.OutcomeSuperseded && !n.GoneAt.IsZero()
	return last.Outcome == journal.OutcomeDone || superseded
}

func hasOpenPurge(n *Node, open []*journal.ActionRecord) bool {
	for _, rec := range open {
		if rec.Kind == journal.ActionPurgeNode && obsoleteReason(n, rec) == "" {
			return true
		}
	}
	return false
}

// hasPodsToFree reports whether EKCO still has to free a terminating pod, or has freed one that still exists.
func (n *Node) hasPodsToFree() bool {
	for _, pod := range n.Pods {
		if pod.Outcome != journal.OutcomeDryRun && pod.Outcome != journal.OutcomeCancelled {
			return true
		}
	}
	return false
}

func reportLost(t *fsm.Thing, _ journal.State, now time.Time) fsm.Report {
	n := of(t)
	report := fsm.Report{Reason: "the node has the taint " + journal.TaintUnreachable, Since: n.UnreachableSince, Cause: n.FactsSeq}
	if report.Since.After(now) {
		report.Since = now
	}
	if !n.Observed() {
		report.Reason = "an adopted action says that the node was lost"
	}
	return report
}

func reportReturned(t *fsm.Thing, from journal.State, _ time.Time) fsm.Report {
	n := of(t)
	if last := n.lastPurge(); from == Purging && last != nil && last.Outcome == journal.OutcomeCancelled {
		return fsm.Report{Reason: last.Action + " was cancelled, and the node is reachable", Cause: last.Seq}
	}
	return fsm.Report{Reason: "the node no longer has the taint " + journal.TaintUnreachable, Cause: n.FactsSeq}
}

// reportOpen returns a function for [fsm.Transition.Report]. The Report has this reason, but no cause: open actions
// cause the transition, not one particular event.
func reportOpen(reason string) func(*fsm.Thing, journal.State, time.Time) fsm.Report {
	return func(*fsm.Thing, journal.State, time.Time) fsm.Report { return fsm.Report{Reason: reason} }
}

func reportPurged(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	n := of(t)
	return fsm.Report{Reason: fmt.Sprintf("%s is %s", n.lastPurge().Action, n.lastPurge().Outcome), Cause: n.lastPurge().Seq}
}

func reportStopped(t *fsm.Thing, from journal.State, _ time.Time) fsm.Report {
	n := of(t)
	report := fsm.Report{Reason: stopReason(n, from), Since: n.UnreachableSince}
	if from == Purging && n.lastPurge() != nil {
		report.Cause = n.lastPurge().Seq
	}
	return report
}

func reportGone(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	n := of(t)
	return fsm.Report{Reason: goneReason(n), Cause: n.GoneSeq}
}

func stopReason(n *Node, from journal.State) string {
	if from == Purging && n.lastPurge() != nil {
		return fmt.Sprintf("%s ended as %s", n.lastPurge().Action, n.lastPurge().Outcome)
	}
	return "the action ended and left the node as it was"
}

func goneReason(n *Node) string {
	if n.ReplacedBy != "" || n.GoneUnseen {
		return n.GoneReason
	}
	return "not deleted by EKCO: " + n.GoneReason
}
