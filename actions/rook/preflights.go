package rook

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights.
const (
	// RookUnchanged requires that the object is the planned one, and that no other client has set the values to change.
	RookUnchanged = "RookUnchanged"
	// StorageNodesReady requires that the nodes to add to the list exist and are ready.
	StorageNodesReady = "StorageNodesReady"
	// StorageHostsListed requires that a list that replaces "all nodes" names every host with OSDs.
	StorageHostsListed = "StorageHostsListed"
	// StorageHostsThere requires that enough hosts for the change have OSDs that are up and in.
	StorageHostsThere = "StorageHostsThere"
	// RoomForCopies requires that Ceph has space for the copies, and does not already keep more copies than the change
	// requests.
	RoomForCopies = "RoomForCopies"
)

// preflightsFor returns the preflights of a change.
func preflightsFor(of journal.Subject, change journal.RookChange) []string {
	names := []string{RookUnchanged}
	for _, need := range []struct {
		so   bool
		name string
	}{
		{len(change.Nodes) > 0, StorageNodesReady},
		{change.Whole, StorageHostsListed},
		{change.Hosts > 0, StorageHostsThere},
		{journal.HasRookPools(of) && isRaising(change), RoomForCopies},
		{journal.HasRookPools(of) && maxNeededCopies(change) > 1, CopiesServe},
	} {
		if need.so {
			names = append(names, need.name)
		}
	}
	return names
}

func isRaising(change journal.RookChange) bool {
	for _, number := range change.Numbers {
		if number.To > number.From {
			return true
		}
	}
	return false
}

func (p Dependencies) preflights() map[string]actions.Preflight {
	return map[string]actions.Preflight{
		RookUnchanged:      actions.CheckOf(unchanged{p.object()}.check),
		StorageNodesReady:  actions.CheckOf(nodesReady{p.Nodes}.check),
		StorageHostsListed: actions.CheckOf(hostsListed{p.Ceph, p.object()}.check),
		StorageHostsThere:  actions.CheckOf(hostsThere{p.Ceph}.check),
		RoomForCopies:      actions.CheckOf(room{p.Ceph, p.IsLowSpaceCheck}.check),
		CopiesServe:        actions.CheckOf(copiesServe{p.Ceph}.check),
	}
}

type unchanged struct {
	object.Object[journal.RookFacts]
}

func (p unchanged) check(ctx context.Context, record journal.ActionRecord, change journal.RookChange) actions.Verdict {
	live, err := p.Read(ctx, record.Subject)
	if verdict := p.StillThere(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	switch moved := change.Moved(live); {
	case moved != "":
		return actions.Abandon("another client changed it: " + moved).About("moved")
	case len(change.Nodes) > 0 && (live.Storage == nil || live.Storage.Claims):
		return actions.Abandon("it no longer has a list of storage nodes").About("no list")
	}
	return actions.Pass()
}

type hostsThere struct{ ceph Ceph }

// check holds at first, because OSDs often return soon. If the loss lasts, an observer reports it, and EKCO ends the
// action.
func (p hostsThere) check(ctx context.Context, _ journal.ActionRecord, change journal.RookChange) actions.Verdict {
	tree, err := p.ceph.Tree(ctx)
	if err != nil {
		return actions.Hold("cannot tell which hosts have OSDs: " + err.Error()).About("hosts unread")
	}
	if hosts := tree.Serving(); len(hosts) < change.Hosts {
		return actions.Hold(fmt.Sprintf("%s with OSDs that are up and in, need %d", words.Count(len(hosts), "host"), change.Hosts)).About("hosts")
	}
	return actions.Pass()
}
