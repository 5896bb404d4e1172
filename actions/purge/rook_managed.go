package purge

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// RookManaged is the preflight that warns of a manual purge which leaves what
// Rook and Ceph have of the node. Only such a purge has it.
const RookManaged = "RookManaged"

// wanted reports whether the purge has a part in Rook.
func (p storagePart) wanted(record journal.ActionRecord) bool {
	if asked := journal.PurgeInputOf(record.Request).MaintainRook; asked != nil {
		return *asked
	}
	return !p.OnlyAsked
}

// left says that what Rook has of the node stays, or nothing if there is no
// Rook. That cannot be told is no reason to hold a purge which leaves Rook alone.
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
		there = fmt.Sprintf("whether there is a CephCluster cannot be told: %v", err)
	}
	return fmt.Sprintf("Rook is not managed (maintain_rook_storage_nodes is false), and %s; what it has of node %s "+
		"(OSDs, CRUSH host, entry in the list of storage nodes) is not looked for, and stays; to have it removed too, "+
		"give purge-node --maintain_rook_storage_nodes", there, record.Subject.Name)
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
