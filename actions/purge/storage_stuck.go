package purge

import (
	"cmp"
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// isStuck reports whether Ceph can do nothing more about the loss of the node's OSDs; see [ceph.Stuck]. If EKCO cannot
// know that, it returns false and the reason.
func isStuck(ctx context.Context, api ceph.API, record journal.ActionRecord) (stuck bool, why string) {
	_, lost, err := lostStorage(record)
	if err != nil {
		return false, err.Error()
	}
	var tree ceph.Tree
	var pools []ceph.Pool
	var pgs []ceph.PG
	var treeErr, poolsErr, pgsErr error
	parallel.Run(
		func() { tree, treeErr = api.Tree(ctx) },
		func() { pools, poolsErr = api.Pools(ctx) },
		func() { pgs, pgsErr = api.PGs(ctx) },
	)
	if err := cmp.Or(treeErr, poolsErr, pgsErr); err != nil {
		return false, fmt.Sprintf("cannot tell whether it can recover by itself: %v", err)
	}
	return ceph.Stuck(tree, pools, pgs, lost.ids())
}
