package purge

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
)

// recreated returns the Deployments that Rook has recreated for the OSDs, as it does if one is deleted while
// the node still exists. Without the OSD they would fail forever. A Deployment belongs to an OSD if it is bound
// to the node and has the same id and UUID. If a UUID is unknown, the id counts, unless another OSD has it now.
// Nothing belongs to the lost node once another node has its name, nor does an OSD that another machine has.
func (p storagePart) recreated(ctx context.Context, view storageView, osds ...OSDFacts) ([]rook.OSDDeployment, error) {
	if view.absent || view.replaced() {
		return nil, nil
	}
	deployments, err := p.deployments(ctx, view.node)
	if err != nil {
		return nil, err
	}
	var found []rook.OSDDeployment
	for _, osd := range osds {
		if view.elsewhere(osd.Ref) != "" {
			continue
		}
		for _, d := range deployments {
			if d.OSD == osd.ID && sameOSD(d.UUID, osd, view.tree) {
				found = append(found, d)
			}
		}
	}
	return found, nil
}

// sameOSD reports whether a Deployment's OSD, of the same id, is the captured one.
func sameOSD(uuid string, osd OSDFacts, tree ceph.Tree) bool {
	if uuid != "" && osd.UUID != "" {
		return uuid == osd.UUID
	}
	now, taken := tree.OSD(osd.ID)
	return !taken || !now.Exists || now.UUID == osd.UUID
}

// removeRecreated removes those Deployments. A failure does not stop the others.
func (p storagePart) removeRecreated(ctx context.Context, view storageView, osds ...OSDFacts) error {
	found, err := p.recreated(ctx, view, osds...)
	if err != nil {
		return err
	}
	var failures []error
	for _, d := range found {
		failures = append(failures, p.remove(ctx, d, view.live))
	}
	return errors.Join(failures...)
}

// remainsRecreated returns one of them as text, or "".
func (p storagePart) remainsRecreated(ctx context.Context, view storageView, osds ...OSDFacts) (string, error) {
	found, err := p.recreated(ctx, view, osds...)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return "Rook has recreated Deployment rook-ceph/" + found[0].Name, nil
}
