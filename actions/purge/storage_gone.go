package purge

import (
	"context"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// gone reports whether Rook was removed with its namespace, so that Ceph never answers again and has nothing of
// the node. A missing CephCluster is not enough: it may come back, and its Ceph with it.
func (p storagePart) gone(ctx context.Context) bool {
	found, err := p.Rook.Detect(ctx)
	return err == nil && found.Gone
}

// unlessGone is a preflight of Ceph that passes once Ceph is gone for good.
type unlessGone struct {
	part  storagePart
	check actions.Preflight
}

// Check implements [actions.Preflight].
func (p unlessGone) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	verdict := p.check.Check(ctx, record)
	if verdict.Kind != actions.VerdictPass && p.part.gone(ctx) {
		return actions.Pass()
	}
	return verdict
}
