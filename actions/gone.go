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

// nodeStillGone compares the live Node with the action's subject.
type nodeStillGone struct {
	api kube.API
	// replaced judges a Node of the same name and another UID.
	replaced func(live kube.Node) Verdict
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
		return p.replaced(live)
	case record.Request.Manual && record.Request.Live:
		return Pass()
	}
	if _, unreachable := live.Facts.Unreachable(); unreachable {
		return Pass()
	}
	return Abandon(fmt.Sprintf("node %s answers again", subject.Name))
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
