package actions

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// NodeStillGone is the preflight that reads the Node live and abandons the
// action when it answers again.
const NodeStillGone = "NodeStillGone"

// nodeStillGone compares the live Node with the action's subject. A node that
// answers ends the action, or warns the person who asked for its purge while it
// answered.
type nodeStillGone struct {
	api kube.API
	// replaced judges a Node of the same name and another UID.
	replaced func(record journal.ActionRecord, live kube.Node) Verdict
}

// Check implements [Preflight].
func (p nodeStillGone) Check(ctx context.Context, record journal.ActionRecord) Verdict {
	subject := record.Subject
	live, err := p.api.Node(ctx, subject.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return Pass()
	case err != nil:
		return Hold(fmt.Sprintf("cannot tell whether node %s is still gone: %v", subject.Name, missing(err, "get", "nodes")))
	case live.UID != subject.UID:
		return p.replaced(record, live)
	}
	if _, unreachable := live.Facts.Unreachable(); unreachable {
		return Pass()
	}
	if record.Request.Manual && record.Request.Live {
		return Warn(fmt.Sprintf("node %s answers and is %s; purging it removes a node that works", subject.Name, readiness(live.Facts)))
	}
	return answersAgain(subject.Name)
}

// answersAgain is the verdict about a node that is back. One of which a part is
// removed already is of no use.
func answersAgain(node string) Verdict {
	back := Abandon(fmt.Sprintf("node %s answers again", node))
	back.Advice = "power the node off, and join it anew once it is purged"
	return back
}

// readiness says of a reachable node whether it is ready.
func readiness(facts journal.NodeFacts) string {
	if facts.Ready() {
		return "ready"
	}
	return "reachable, though not ready"
}

// missing names the permission that a Forbidden is about.
func missing(err error, verb, resource string) error {
	if errors.Is(err, kube.ErrForbidden) {
		return fmt.Errorf("EKCO's service account lacks the permission to %s %s: %w", verb, resource, err)
	}
	return err
}

// deleted takes a call that found its object already gone for a success.
func deleted(err error) error {
	if errors.Is(err, kube.ErrNotFound) || errors.Is(err, kube.ErrOtherUID) {
		return nil
	}
	return err
}
