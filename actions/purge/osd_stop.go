package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
)

// stopOSDs waits until the OSDs of a node that answers have stopped. The kubelet stops them after their Deployments are
// deleted. If Rook uses every node, it may recreate a Deployment until then, which stopOSDs removes.
type stopOSDs storagePart

func (s stopOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	for _, osd := range view.remaining() {
		if osd.Up {
			return actions.Proof{Missing: ceph.Names(osd.ID) + " still runs"}, nil
		}
	}
	missing, err := storagePart(s).recreatedReason(ctx, view, view.OSDs...)
	if err == nil && missing == "" {
		missing, err = s.runningPod(ctx, view)
	}
	return actions.Proof{Done: err == nil && missing == "", Missing: missing}, err
}

func (s stopOSDs) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	view, err := storagePart(s).readView(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	return nil, storagePart(s).removeRecreated(ctx, view, view.OSDs...)
}

// runningPod returns the pod of an OSD that has not ended, or "". While its pod exists, an OSD that Ceph sees as down
// may come up again. Pods of a node that is lost now do not count, because no kubelet ends them.
func (s stopOSDs) runningPod(ctx context.Context, view storageView) (string, error) {
	live, err := s.api.Node(ctx, view.node.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read node %s: %w", view.node.Name, kube.NamePermission(err, "get", "nodes"))
	case live.UID != view.node.UID:
		return "", nil
	}
	if _, unreachable := live.Facts.Unreachable(); unreachable {
		return "", nil
	}
	pods, err := s.Rook.OSDPods(ctx, view.node.Name)
	if err != nil {
		return "", fmt.Errorf("find the pods of OSDs on node %s: %w", view.node.Name, kube.NamePermission(err, "list", "pods in rook-ceph"))
	}
	for _, pod := range pods {
		for _, osd := range view.remaining() {
			if osd.ID == pod.OSD {
				return "pod rook-ceph/" + pod.Name + " has not ended", nil
			}
		}
	}
	return "", nil
}
