package purge

import (
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// By the time of a step, another machine may own what a purge captured. The functions here find it.

// newOwners are other Nodes that now own names of the lost node; empty if there is none.
type newOwners struct {
	// hostname is the Node that has the node's name or hostname: it owns what Rook and Ceph have under that.
	hostname string
	// crush is the Node with the same host in the CRUSH map, where dots and dashes are equal. It is also set if
	// hostname is.
	crush string
}

// newOwners returns the Nodes that now have the node's names.
func (p storagePart) newOwners(ctx context.Context, lost NodeIdentity) (newOwners, error) {
	nodes, err := p.api.ListNodes(ctx)
	if err != nil {
		return newOwners{}, fmt.Errorf("find the Node that has the hostname of node %s: %w", lost.Name, kube.Lacking(err, "list", "nodes"))
	}
	var found newOwners
	for _, node := range nodes {
		name := fmt.Sprintf("node %s (uid %s)", node.Name, node.UID)
		switch other := identityOf(node); {
		case other.UID == lost.UID:
		case overlap(other.names(), lost.names()):
			return newOwners{hostname: name, crush: name}, nil
		case overlap(other.crushNames(), lost.crushNames()):
			found.crush = name
		}
	}
	return found, nil
}

func identityOf(node kube.Node) NodeIdentity {
	identity := NodeIdentity{Name: node.Name, UID: node.UID}
	identity.remember(node.Facts)
	return identity
}

// crushNames returns what Rook may call the node in the CRUSH map.
func (n NodeIdentity) crushNames() (names []string) {
	for _, name := range n.names() {
		names = append(names, ceph.CrushName(name))
	}
	return names
}

// isHost reports whether a host of the CRUSH map may be the node's.
func (n NodeIdentity) isHost(host string) bool {
	return slices.Contains(n.crushNames(), ceph.CrushName(host))
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// elsewhere returns which other machine has an OSD now, or "". A Deployment or the CRUSH map is enough: an OSD
// that is down on another machine still belongs to that machine.
func (v storageView) elsewhere(osd ceph.Ref) string {
	for _, d := range v.deployments {
		if why := v.boundElsewhere(d); why != "" && runs(d, osd) {
			return why
		}
	}
	now, there := v.tree.OSD(osd.ID)
	switch {
	case !there:
	case now.Host != "" && !v.node.isHost(now.Host):
		return fmt.Sprintf("the CRUSH map has it on host %s now", now.Host)
	case now.Up && v.newOwners.hostname != "":
		return fmt.Sprintf("it runs, and %s has the hostname %s now", v.newOwners.hostname, v.node.hostname())
	}
	return ""
}

// boundElsewhere returns to which other machine a Deployment is bound now, or "".
func (v storageView) boundElsewhere(d rook.OSDDeployment) string {
	name := "Deployment " + rook.Namespace + "/" + d.Name
	switch {
	case d.Hostname == "":
		return name + " is bound to no machine"
	case !v.node.binds(d):
		return fmt.Sprintf("%s is bound to %s now", name, d.Hostname)
	case v.newOwners.hostname != "":
		return fmt.Sprintf("%s is bound to the hostname %s, which %s has now", name, d.Hostname, v.newOwners.hostname)
	}
	return ""
}

// runs reports whether a Deployment is that of the OSD, as far as UUIDs are known.
func runs(d rook.OSDDeployment, osd ceph.Ref) bool {
	if d.UUID != "" && osd.UUID != "" {
		return d.UUID == osd.UUID
	}
	return d.OSD == osd.ID
}

// leaves returns the captured OSDs that another machine has now.
func (v storageView) leaves() (left []journal.ActionLeft) {
	for _, osd := range v.OSDs {
		now, why, _ := v.remains(osd)
		if why == "" {
			continue
		}
		if now.Exists && !now.In() && !osd.Out {
			why += fmt.Sprintf("; it is marked out; to undo that: ceph osd in %d", osd.ID)
		}
		left = append(left, journal.ActionLeft{What: ceph.Names(osd.ID), Reason: why})
	}
	return left
}

// leaves returns the OSDs that the steps of storage must leave alone.
func (p storagePart) leaves(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	view, err := p.look(ctx, step.Action)
	return view.leaves(), err
}
