package purge

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
)

// recreatedDeployments returns the Deployments that Rook has recreated for the OSDs. Rook does so if a Deployment is
// deleted while the node still exists, and without the OSD the new one would fail forever. A Deployment belongs to an
// OSD if it is bound to the node and has the same id and UUID. If a UUID is unknown, the id is enough, unless another
// OSD has the id now. If another node has the lost node's name, or another machine has the OSD, no Deployment belongs
// to the lost node.
func (p storagePart) recreatedDeployments(ctx context.Context, view storageView, osds ...OSDFacts) ([]rook.OSDDeployment, error) {
	if view.absent || view.isReplaced() {
		return nil, nil
	}
	deployments, err := p.deployments(ctx, view.node)
	if err != nil {
		return nil, err
	}
	var found []rook.OSDDeployment
	for _, osd := range osds {
		if view.onOtherMachine(osd.Ref) != "" {
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

// sameOSD reports whether a Deployment with the id of the captured OSD is for that OSD, and not for a later one with
// the id.
func sameOSD(uuid string, osd OSDFacts, tree ceph.Tree) bool {
	if uuid != "" && osd.UUID != "" {
		return uuid == osd.UUID
	}
	now, taken := tree.OSD(osd.ID)
	return !taken || !now.Exists || now.UUID == osd.UUID
}

// removeRecreated removes the recreated Deployments. If one removal fails, it continues with the others.
func (p storagePart) removeRecreated(ctx context.Context, view storageView, osds ...OSDFacts) error {
	found, err := p.recreatedDeployments(ctx, view, osds...)
	if err != nil {
		return err
	}
	var failures []error
	for _, d := range found {
		failures = append(failures, p.removeOSDDeployment(ctx, d, view.live))
	}
	return errors.Join(failures...)
}

// recreatedReason returns a text that names a recreated Deployment, or "" if there is none.
func (p storagePart) recreatedReason(ctx context.Context, view storageView, osds ...OSDFacts) (string, error) {
	found, err := p.recreatedDeployments(ctx, view, osds...)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return "Rook has recreated Deployment rook-ceph/" + found[0].Name, nil
}
