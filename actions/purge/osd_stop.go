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

// stopOSDs waits until the OSDs of a node that answers have stopped: the kubelet stops them once their
// Deployments are gone. It removes Deployments that Rook recreates in this time, as it does if it uses every
// node.
type stopOSDs storagePart

// Prove implements [actions.Step].
func (s stopOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	view, err := storagePart(s).look(ctx, step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	for _, osd := range view.remaining() {
		if osd.Up {
			return actions.Proof{Missing: ceph.Names(osd.ID) + " still runs"}, nil
		}
	}
	missing, err := storagePart(s).remainsRecreated(ctx, view, view.OSDs...)
	if err == nil && missing == "" {
		missing, err = s.ending(ctx, view)
	}
	return actions.Proof{Done: err == nil && missing == "", Missing: missing}, err
}

// Do implements [actions.Step].
func (s stopOSDs) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	view, err := storagePart(s).look(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	return nil, storagePart(s).removeRecreated(ctx, view, view.OSDs...)
}

// ending returns which pod of the OSDs has not ended, or "". An OSD that is down in Ceph may come up again
// while its pod exists. The pods of a node that was lost since do not count: no kubelet ends them.
func (s stopOSDs) ending(ctx context.Context, view storageView) (string, error) {
	live, err := s.api.Node(ctx, view.node.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read node %s: %w", view.node.Name, kube.Lacking(err, "get", "nodes"))
	case live.UID != view.node.UID:
		return "", nil
	}
	if _, unreachable := live.Facts.Unreachable(); unreachable {
		return "", nil
	}
	pods, err := s.Rook.OSDPods(ctx, view.node.Name)
	if err != nil {
		return "", fmt.Errorf("find the pods of OSDs on node %s: %w", view.node.Name, kube.Lacking(err, "list", "pods in rook-ceph"))
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
