package purge

import (
	"context"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// isRookGone reports whether Rook was removed with its namespace, so that Ceph never answers again and has no data of
// the node. A missing CephCluster alone is not enough, because it may be created again for the same Ceph.
func (p storagePart) isRookGone(ctx context.Context) bool {
	found, err := p.Rook.Detect(ctx)
	return err == nil && found.Gone
}

// unlessGone wraps a preflight of Ceph, and passes if Ceph is gone for good.
type unlessGone struct {
	part  storagePart
	check actions.Preflight
}

func (p unlessGone) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	verdict := p.check.Check(ctx, record)
	if verdict.Kind != actions.VerdictPass && p.part.isRookGone(ctx) {
		return actions.Pass()
	}
	return verdict
}
