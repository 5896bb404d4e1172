// Package nodes is the live check of a lost node that capabilities share. It is no capability itself.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// StillGone is the preflight that reads the Node live and abandons the action if the node answers again.
const StillGone = "NodeStillGone"

// Watch compares the live Node with the action's subject. If the node answers, it abandons the action, or warns
// if a person asked for the purge while it answered. It must be the last preflight: the node may return during
// the others.
type Watch struct {
	API kube.API
	// Replaced returns the verdict for a Node with the same name and another UID.
	Replaced func(record journal.ActionRecord, live kube.Node) actions.Verdict
}

// Check implements [actions.Preflight].
func (p Watch) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	subject := record.Subject
	live, err := p.API.Node(ctx, subject.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return actions.Pass()
	case err != nil:
		err = kube.Lacking(err, "get", "nodes")
		return actions.Hold(fmt.Sprintf("cannot tell whether node %s is still gone: %v", subject.Name, err)).About("unknown " + actions.KeyOf(err))
	case live.UID != subject.UID:
		return p.Replaced(record, live)
	}
	if _, unreachable := live.Facts.Unreachable(); unreachable {
		return actions.Pass()
	}
	if record.Request.Manual && journal.PurgeInputOf(record.Request).Live {
		return actions.Warn(fmt.Sprintf("node %s answers and is %s; purging it removes a node that works", subject.Name, readiness(live.Facts))).About("answers")
	}
	return answersAgain(subject.Name)
}

// answersAgain is the verdict if the node is back. If part of it is already removed, it is of no use.
func answersAgain(node string) actions.Verdict {
	back := actions.Abandon(fmt.Sprintf("node %s answers again", node)).About("answers")
	back.Advice = "power the node off, and join it again once it is purged"
	return back
}

// readiness describes a reachable node.
func readiness(facts journal.NodeFacts) string {
	switch {
	case facts.Ready():
		return "ready"
	case !slices.ContainsFunc(facts.Taints, func(t journal.Taint) bool { return t.Key != journal.TaintUnschedulable }):
		return "ready, though cordoned"
	}
	return "reachable, though not ready"
}
