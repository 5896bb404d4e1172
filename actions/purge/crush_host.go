package purge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
)

// removeCrushHost removes the node's host from the CRUSH map. It is the last step, so it checks once more for
// Deployments that Rook has recreated.
type removeCrushHost storagePart

func (s removeCrushHost) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	host, there := view.tree.Host(view.CrushHost)
	switch why := view.hostKept(host); {
	case !there:
		missing, err := storagePart(s).recreatedReason(ctx, view, view.OSDs...)
		return actions.Proof{Done: err == nil && missing == "", Missing: missing}, err
	case why != "":
		return actions.Proof{Done: true, Outputs: leftOutput(actions.LeftBecause("CRUSH host "+host.Name, why))}, nil
	}
	return actions.Proof{Missing: "the CRUSH map still has host " + host.Name}, nil
}

func (s removeCrushHost) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	if err := storagePart(s).removeRecreated(ctx, view, view.OSDs...); err != nil {
		return nil, err
	}
	host, there := view.tree.Host(view.CrushHost)
	if !there || view.hostKept(host) != "" {
		return nil, nil
	}
	if len(host.OSDs) > 0 {
		return nil, fmt.Errorf("remove CRUSH host %s: %w: %s was added later, or still runs; remove it by hand, then: ekco retry %s",
			host.Name, ceph.ErrHostNotEmpty, ceph.Names(host.OSDs...), step.Action.ID)
	}
	return nil, s.Ceph.CrushRemove(ctx, host.Name)
}

// hostKept returns the reason to keep the CRUSH host, or "". EKCO keeps it if another Node has its name, or if it has
// only OSDs of other machines.
func (v storageView) hostKept(host ceph.Host) string {
	if node := v.newOwners.crush; node != "" {
		return fmt.Sprintf("it belongs to %s now", node)
	}
	if len(host.OSDs) == 0 {
		return ""
	}
	for _, id := range host.OSDs {
		if v.leftReasons[ceph.Names(id)] == "" && v.onOtherMachine(v.refFor(id)) == "" {
			return ""
		}
	}
	return fmt.Sprintf("it still holds %s, which is not the lost node's; once it is empty, remove it with: ceph osd crush rm %s",
		ceph.Names(host.OSDs...), host.Name)
}

// refFor returns the id and UUID of an OSD of the tree.
func (v storageView) refFor(id int) ceph.Ref {
	if osd, ok := v.tree.OSD(id); ok {
		return osd.Ref
	}
	return ceph.Ref{ID: id}
}
