// Package nodes is what the capabilities that act on a lost node share: the live
// look at its Node. It is no capability itself.
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

// StillGone is the preflight that reads the Node live and abandons the action when
// it answers again.
const StillGone = "NodeStillGone"

// Watch compares the live Node with the action's subject. A node that answers ends
// the action, or warns the person who asked for its purge while it answered. It is
// to be asked when all others have answered: the node may return meanwhile.
type Watch struct {
	API kube.API
	// Replaced judges a Node of the same name and another UID.
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

// answersAgain is the verdict about a node that is back. One of which a part is
// removed already is of no use.
func answersAgain(node string) actions.Verdict {
	back := actions.Abandon(fmt.Sprintf("node %s answers again", node)).About("answers")
	back.Advice = "power the node off, and join it again once it is purged"
	return back
}

// readiness says of a reachable node whether it is ready.
func readiness(facts journal.NodeFacts) string {
	switch {
	case facts.Ready():
		return "ready"
	case !slices.ContainsFunc(facts.Taints, func(t journal.Taint) bool { return t.Key != journal.TaintUnschedulable }):
		return "ready, though cordoned"
	}
	return "reachable, though not ready"
}
