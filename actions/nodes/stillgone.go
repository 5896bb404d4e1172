// Package nodes has the check of a lost node that several capabilities share. It is not a capability.
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

// StillGone is the preflight that reads the Node again, and abandons the action if the node answers.
const StillGone = "NodeStillGone"

// Watch is a preflight that reads the Node and compares it with the action's subject. If the node answers, Watch
// abandons the action; if a person requested the purge of a node that answered, it only warns. It must be the last
// preflight, because the node may return while other preflights run.
type Watch struct {
	API kube.API
	// Replaced returns the verdict if a Node with the same name has another UID.
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
		err = kube.NamePermission(err, "get", "nodes")
		return actions.Hold(fmt.Sprintf("cannot tell whether node %s is still gone: %v", subject.Name, err)).About("unknown " + actions.KeyOf(err))
	case live.UID != subject.UID:
		return p.Replaced(record, live)
	}
	if _, unreachable := live.Facts.Unreachable(); unreachable {
		return actions.Pass()
	}
	if record.Request.Manual && journal.PurgeInputOf(record.Request).Live {
		return actions.Warn(fmt.Sprintf("node %s answers and is %s; purging it removes a node that works", subject.Name, readinessText(live.Facts))).About("answers")
	}
	return answersVerdict(subject.Name)
}

// answersVerdict returns the verdict if the node answers again. If it was partly removed, a person must remove the
// rest.
func answersVerdict(node string) actions.Verdict {
	back := actions.Abandon(fmt.Sprintf("node %s answers again", node)).About("answers")
	back.Advice = "power the node off, and join it again once it is purged"
	return back
}

// readinessText returns a text about the state of a reachable node.
func readinessText(facts journal.NodeFacts) string {
	switch {
	case facts.Ready():
		return "ready"
	case !slices.ContainsFunc(facts.Taints, func(t journal.Taint) bool { return t.Key != journal.TaintUnschedulable }):
		return "ready, though cordoned"
	}
	return "reachable, though not ready"
}
