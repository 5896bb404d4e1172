package purge

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
)

// anew returns the Deployments that Rook made again for the OSDs, which it does
// when it sees one deleted while the node is still there. Without the OSD they
// could only fail, for ever. One is the OSD's if it is bound to the node and has
// the id and the UUID. Where a UUID is not known the id counts, unless another
// OSD has it now. Nothing is the lost node's once its name is another's, nor what
// belongs to an OSD that another machine has.
func (p storagePart) anew(ctx context.Context, view storageView, osds ...OSDFacts) ([]rook.OSDDeployment, error) {
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

// removeAnew removes those Deployments. One that cannot be removed does not keep
// the others.
func (p storagePart) removeAnew(ctx context.Context, view storageView, osds ...OSDFacts) error {
	found, err := p.anew(ctx, view, osds...)
	if err != nil {
		return err
	}
	var failures []error
	for _, d := range found {
		failures = append(failures, p.remove(ctx, d, view.live))
	}
	return errors.Join(failures...)
}

// missingAnew says what is left of them, or returns "".
func (p storagePart) missingAnew(ctx context.Context, view storageView, osds ...OSDFacts) (string, error) {
	found, err := p.anew(ctx, view, osds...)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return "Rook made Deployment rook-ceph/" + found[0].Name + " again", nil
}
