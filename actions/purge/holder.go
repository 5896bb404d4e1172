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

// When a step runs, objects that the purge captured may belong to another machine. These functions find that machine.

// newOwners names other Nodes that now own names of the lost node. Each field is empty if there is no such Node.
type newOwners struct {
	// hostname is the Node that now has the lost node's name or hostname. It owns everything of Rook and Ceph under
	// that name.
	hostname string
	// crush is the Node with the same host name in the CRUSH map, where dots and dashes are equal. It is also set if
	// hostname is set.
	crush string
}

// newOwners finds the Nodes that now have names of the lost node.
func (p storagePart) newOwners(ctx context.Context, lost NodeIdentity) (newOwners, error) {
	nodes, err := p.api.ListNodes(ctx)
	if err != nil {
		return newOwners{}, fmt.Errorf("find the Node that has the hostname of node %s: %w", lost.Name, kube.NamePermission(err, "list", "nodes"))
	}
	var found newOwners
	for _, node := range nodes {
		name := fmt.Sprintf("node %s (uid %s)", node.Name, node.UID)
		switch other := identityOf(node); {
		case other.UID == lost.UID:
		case haveCommon(other.names(), lost.names()):
			return newOwners{hostname: name, crush: name}, nil
		case haveCommon(other.crushNames(), lost.crushNames()):
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

// crushNames returns the names that Rook may give the node in the CRUSH map.
func (n NodeIdentity) crushNames() (names []string) {
	for _, name := range n.names() {
		names = append(names, ceph.CrushName(name))
	}
	return names
}

// isHost reports whether a host of the CRUSH map may be the node.
func (n NodeIdentity) isHost(host string) bool {
	return slices.Contains(n.crushNames(), ceph.CrushName(host))
}

func haveCommon(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// onOtherMachine returns a reason if an OSD is on another machine now, or "". One sign in a Deployment or in the CRUSH
// map is enough, because an OSD on another machine belongs to that machine even if it is down.
func (v storageView) onOtherMachine(osd ceph.Ref) string {
	for _, d := range v.deployments {
		if why := v.boundToOtherMachine(d); why != "" && isForOSD(d, osd) {
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

// boundToOtherMachine returns a reason if a Deployment is not bound to this node now, or "".
func (v storageView) boundToOtherMachine(d rook.OSDDeployment) string {
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

// isForOSD reports whether a Deployment is for the OSD. It compares UUIDs if both are known, and else the ids.
func isForOSD(d rook.OSDDeployment, osd ceph.Ref) bool {
	if d.UUID != "" && osd.UUID != "" {
		return d.UUID == osd.UUID
	}
	return d.OSD == osd.ID
}

// untouchedOSDs lists the captured OSDs that EKCO must not remove, because they are on another machine now.
func (v storageView) untouchedOSDs() (left []journal.ActionLeft) {
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

// untouchedOSDs lists the OSDs that the storage steps must not remove.
func (p storagePart) untouchedOSDs(ctx context.Context, step actions.StepContext) ([]journal.ActionLeft, error) {
	view, err := p.readView(ctx, step.Action)
	return view.untouchedOSDs(), err
}
