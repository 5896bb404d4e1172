package purge

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// RookManaged is the preflight that warns if a manual purge was requested without the removal of the node from Rook and
// Ceph.
const RookManaged = "RookManaged"

// removesStorage reports whether the purge must remove the node from Ceph, which is the default. It does not depend on
// the setting maintain_rook_storage_nodes: if Rook uses all nodes, kURL sets that to false, but a purged node still has
// OSDs.
func removesStorage(record journal.ActionRecord) bool {
	asked := journal.PurgeInputOf(record.Request).MaintainRook
	return asked == nil || *asked
}

// changesNodeList reports whether the purge may change the list of storage nodes.
func (p storagePart) changesNodeList(record journal.ActionRecord) bool {
	return !p.NodeListOnlyOnRequest || journal.PurgeInputOf(record.Request).MaintainRook != nil
}

// leftWarning returns a warning that Rook keeps the node's data, or "" if there is no Rook. A failed read must not hold
// a purge that does not touch Rook.
func (p storagePart) leftWarning(ctx context.Context, record journal.ActionRecord) string {
	if !record.Request.Manual {
		return ""
	}
	installation, err := p.Rook.Detect(ctx)
	if err == nil && !installation.Present {
		return ""
	}
	there := "there is a CephCluster"
	if err != nil {
		there = fmt.Sprintf("there may be a CephCluster (%v)", err)
	}
	return fmt.Sprintf("this purge leaves Rook alone (--maintain_rook_storage_nodes=false), and %s; the OSDs, CRUSH host and "+
		"storage entry of node %s stay; to remove them too, run purge-node without --maintain_rook_storage_nodes=false",
		there, record.Subject.Name)
}

type rookManaged struct{}

func (rookManaged) Check(_ context.Context, record journal.ActionRecord) actions.Verdict {
	facts, err := factsOf(record)
	switch {
	case err != nil:
		return actions.Hold(err.Error())
	case facts.StorageLeft != "":
		return actions.Warn(facts.StorageLeft)
	}
	return actions.Pass()
}
