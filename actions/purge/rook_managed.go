package purge

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// RookManaged is the preflight that warns if a manual purge was told to leave the node's part of Rook and Ceph.
const RookManaged = "RookManaged"

// wanted reports whether the purge removes the node from Ceph, which is the default. The setting does not
// matter: if Rook uses all nodes, kURL sets maintain_rook_storage_nodes to false, and a purged node still has
// OSDs.
func wanted(record journal.ActionRecord) bool {
	asked := journal.PurgeInputOf(record.Request).MaintainRook
	return asked == nil || *asked
}

// managed reports whether the purge may change the list of storage nodes.
func (p storagePart) managed(record journal.ActionRecord) bool {
	return !p.Unmanaged || journal.PurgeInputOf(record.Request).MaintainRook != nil
}

// left returns the warning that Rook's part of the node stays, or "" if there is no Rook. A failed read does
// not hold a purge that leaves Rook alone.
func (p storagePart) left(ctx context.Context, record journal.ActionRecord) string {
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

// Check implements [actions.Preflight].
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
