package purge

import (
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// storageView is what Ceph and Rook have of a node now.
type storageView struct {
	StorageFacts
	node NodeIdentity
	tree ceph.Tree
	// deployments are the Deployments of all OSDs.
	deployments []rook.OSDDeployment
	newOwners   newOwners
	// left is why OSDs were left alone before.
	left map[string]string
	// live is set if the node answers, see [storagePlan].
	live bool
}

// replaced reports whether another Node has the name or the hostname now.
func (v storageView) replaced() bool { return v.newOwners.hostname != "" }

// foundOSDs is the output of find-osds: the facts that could not be captured.
type foundOSDs struct {
	OSDs      []OSDFacts `json:"osds,omitempty"`
	CrushHost string     `json:"crush_host,omitempty"`
	// Left are captured OSDs that now belong to another node.
	Left []int `json:"left,omitempty"`
	// Deployments and Entry are set if Rook could not be read either; NoRook if there is no Rook any more.
	Deployments []rook.OSDDeployment `json:"deployments,omitempty"`
	Entry       *rook.StorageNode    `json:"entry,omitempty"`
	NoRook      bool                 `json:"no_rook,omitempty"`
}

// lostStorage returns the captured facts without the OSDs that are left alone.
func lostStorage(record journal.ActionRecord) (NodeIdentity, StorageFacts, error) {
	node, storage, err := capturedStorage(record)
	storage.OSDs = slices.DeleteFunc(slices.Clone(storage.OSDs), func(osd OSDFacts) bool { return record.Left[ceph.Names(osd.ID)] != "" })
	return node, storage, err
}

// capturedStorage returns the captured facts, with what was found later.
func capturedStorage(record journal.ActionRecord) (NodeIdentity, StorageFacts, error) {
	facts, err := factsOf(record)
	if err != nil {
		return NodeIdentity{}, StorageFacts{}, err
	}
	if facts.Storage == nil {
		return facts.Node, StorageFacts{}, nil
	}
	var found foundOSDs
	later, err := actions.StepContext{Action: record}.Output(doesFindOSDs, &found)
	if err != nil {
		return NodeIdentity{}, StorageFacts{}, err
	}
	storage := *facts.Storage
	if later {
		storage.OSDs, storage.CrushHost = found.OSDs, found.CrushHost
	}
	storage.absent = found.NoRook
	if later && storage.RookUnread != "" {
		storage.Deployments, storage.Entry = found.Deployments, found.Entry
	}
	return facts.Node, storage, nil
}

// look reads what is left of the node.
func (p storagePart) look(ctx context.Context, record journal.ActionRecord) (storageView, error) {
	var view storageView
	var err error
	if view.node, view.StorageFacts, err = lostStorage(record); err != nil {
		return storageView{}, err
	}
	view.left, view.live = record.Left, journal.PurgeInputOf(record.Request).Live
	if view.absent {
		return view, nil
	}
	// Ceph is asked first, so that reads of the same moment share one process.
	var treeErr error
	parallel.Run(
		func() { view.tree, treeErr = p.Ceph.Tree(ctx) },
		func() { view.deployments, err = p.allDeployments(ctx, view.node) },
	)
	switch {
	case treeErr != nil && p.gone(ctx):
		view.absent = true
		return view, nil
	case err != nil:
		return storageView{}, err
	case treeErr != nil:
		return storageView{}, fmt.Errorf("read the CRUSH tree: %w", treeErr)
	}
	// A joining machine is a Node before Rook or Ceph have anything of it.
	view.newOwners, err = p.newOwners(ctx, view.node)
	return view, err
}

// remains returns the OSD as it is now, and whether it must still be removed. With the same id and another UUID
// it is another OSD. If another machine has it now, it stays; kept is why.
func (v storageView) remains(osd OSDFacts) (now ceph.OSD, kept string, remains bool) {
	now, there := v.tree.OSD(osd.ID)
	switch {
	case !there, now.IsOther(osd.Ref), osd.Gone && now.Exists:
		return now, "", false
	}
	kept = v.elsewhere(osd.Ref)
	return now, kept, kept == ""
}

// remaining returns the OSDs that are still to be removed.
func (v storageView) remaining() []ceph.OSD {
	var osds []ceph.OSD
	for _, osd := range v.OSDs {
		if now, _, remains := v.remains(osd); remains {
			osds = append(osds, now)
		}
	}
	return osds
}
