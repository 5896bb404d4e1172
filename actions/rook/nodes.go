package rook

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

type nodesReady struct{ nodes Nodes }

// check abandons the action if a node has changed. Then the action adds no node, and EKCO requests a new action for the
// others.
func (p nodesReady) check(ctx context.Context, _ journal.ActionRecord, change journal.RookChange) actions.Verdict {
	listed, err := p.nodes.ListNodes(ctx)
	if err != nil {
		return actions.Hold("cannot tell whether the nodes are ready: " + kube.NamePermission(err, "list", "nodes").Error()).About("nodes unread")
	}
	live := make(map[string]kube.Node, len(listed))
	for _, node := range listed {
		live[node.Name] = node
	}
	for _, asked := range change.Nodes {
		node, there := live[asked.Name]
		if !there {
			return actions.Abandon("node " + asked.Name + " is gone").About("node gone")
		}
		if verdict := compareWithEntry(asked, node, change.Label); verdict.Kind != actions.VerdictPass {
			return verdict
		}
	}
	return actions.Pass()
}

// compareWithEntry compares a node with its planned entry.
func compareWithEntry(asked journal.RookNode, node kube.Node, label string) actions.Verdict {
	key, value, _ := strings.Cut(label, "=")
	has, labelled := node.Facts.Labels[key]
	switch {
	case node.UID != asked.UID:
		return actions.Abandon("another node has the name " + asked.Name + " now").About("node replaced")
	case node.Facts.Hostname != asked.Hostname && node.Facts.Hostname != "":
		return actions.Abandon("node " + asked.Name + " has the hostname " + node.Facts.Hostname + " now, not " + asked.Hostname).About("node renamed")
	case asked.Occupied: // it is in the list because of its OSDs
	case !node.Facts.Ready():
		return actions.Abandon("node " + asked.Name + " is no longer ready").About("node unready")
	case label != "" && (!labelled || has != value):
		return actions.Abandon("node " + asked.Name + " no longer has label " + label).About("node unlabelled")
	}
	return actions.Pass()
}

type hostsListed struct {
	ceph Ceph
	object.Object[journal.RookFacts]
}

// check passes if Rook already uses a list, because the change then cannot omit a host.
func (p hostsListed) check(ctx context.Context, record journal.ActionRecord, change journal.RookChange) actions.Verdict {
	live, err := p.Read(ctx, record.Subject)
	switch {
	case err != nil && !errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Hold(err.Error()).About("unread")
	case err != nil || live.Storage == nil || !live.Storage.AllNodes:
		return actions.Pass() // other preflights handle that
	}
	tree, err := p.ceph.Tree(ctx)
	if err != nil {
		return actions.Hold("cannot tell which hosts have OSDs: " + err.Error()).About("hosts unread")
	}
	named := map[string]bool{}
	for _, node := range change.Nodes {
		named[journal.CrushName(node.Hostname)], named[journal.CrushName(node.Name)] = true, true
	}
	for _, name := range live.Storage.Nodes {
		named[journal.CrushName(name)] = true
	}
	if i := slices.IndexFunc(tree.HostsWithOSDs(), func(host string) bool { return !named[journal.CrushName(host)] }); i >= 0 {
		return actions.Abandon("the list would leave out host " + tree.HostsWithOSDs()[i] + ", which has OSDs").About("host left out")
	}
	return actions.Pass()
}
