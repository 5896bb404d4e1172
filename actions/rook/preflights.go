package rook

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights.
const (
	// RookUnchanged: the object is the one that was planned for, and nobody else has set
	// what is to be changed of it.
	RookUnchanged = "RookUnchanged"
	// StorageNodesReady: the nodes that are to be listed are there and ready.
	StorageNodesReady = "StorageNodesReady"
	// StorageHostsThere: as many hosts have OSDs that are up and in as the change needs.
	StorageHostsThere = "StorageHostsThere"
)

// needs returns the preflights of a change.
func needs(change journal.RookChange) []string {
	names := []string{RookUnchanged}
	if len(change.Nodes) > 0 {
		names = append(names, StorageNodesReady)
	}
	if change.Hosts > 0 {
		names = append(names, StorageHostsThere)
	}
	return names
}

func (p Parts) preflights() map[string]actions.Preflight {
	return map[string]actions.Preflight{
		RookUnchanged:     unchanged{p.object()},
		StorageNodesReady: nodesReady{p.Nodes},
		StorageHostsThere: hostsThere{p.Ceph},
	}
}

type unchanged struct {
	object.Object[journal.RookFacts]
}

// Check implements [actions.Preflight].
func (p unchanged) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	change, err := journal.InputOf[journal.RookChange](record.Request)
	if err != nil {
		return actions.Hold(err.Error()).About("input")
	}
	live, err := p.Read(ctx, record.Subject)
	if verdict := p.StillThere(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	switch moved := change.Moved(live); {
	case moved != "":
		return actions.Abandon("somebody else changed it: " + moved).About("moved")
	case len(change.Nodes) > 0 && (live.Storage == nil || live.Storage.Claims):
		return actions.Abandon("it has no list of storage nodes any more").About("no list")
	}
	return actions.Pass()
}

type nodesReady struct{ nodes Nodes }

// Check implements [actions.Preflight]. Of nodes that are not what they were nothing is
// added: what else is asked for is asked for anew.
func (p nodesReady) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	change, err := journal.InputOf[journal.RookChange](record.Request)
	if err != nil {
		return actions.Hold(err.Error()).About("input")
	}
	for _, asked := range change.Nodes {
		node, err := p.nodes.Node(ctx, asked.Name)
		switch {
		case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
			return actions.Abandon("node " + asked.Name + " is gone").About("node gone")
		case err != nil:
			return actions.Hold("cannot tell whether node " + asked.Name + " is ready: " + err.Error()).About("node unread")
		case node.UID != asked.UID:
			return actions.Abandon("another node has the name " + asked.Name + " now").About("node replaced")
		case !node.Facts.Ready():
			return actions.Abandon("node " + asked.Name + " is not ready any more").About("node unready")
		}
	}
	return actions.Pass()
}

type hostsThere struct{ ceph Ceph }

// Check implements [actions.Preflight].
func (p hostsThere) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	change, err := journal.InputOf[journal.RookChange](record.Request)
	if err != nil {
		return actions.Hold(err.Error()).About("input")
	}
	tree, err := p.ceph.Tree(ctx)
	if err != nil {
		return actions.Hold("cannot tell which hosts have OSDs: " + err.Error()).About("hosts unread")
	}
	if hosts := tree.Serving(); len(hosts) < change.Hosts {
		return actions.Abandon(fmt.Sprintf("%s have OSDs that are up and in, and it takes %d",
			words.Count(len(hosts), "host"), change.Hosts)).About("hosts")
	}
	return actions.Pass()
}
