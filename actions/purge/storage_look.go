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

// storageView is the present data of Ceph and Rook about a node.
type storageView struct {
	StorageFacts
	node NodeIdentity
	tree ceph.Tree
	// deployments lists the Deployments of all OSDs.
	deployments []rook.OSDDeployment
	newOwners   newOwners
	// leftReasons has the reasons why EKCO did not touch OSDs earlier.
	leftReasons map[string]string
	// live is true if the node answers; see [storagePlan].
	live bool
}

// isReplaced reports whether another Node has the name or the hostname now.
func (v storageView) isReplaced() bool { return v.newOwners.hostname != "" }

// foundOSDs is the output of find-osds: the facts that EKCO could not capture when it planned.
type foundOSDs struct {
	OSDs      []OSDFacts `json:"osds,omitempty"`
	CrushHost string     `json:"crush_host,omitempty"`
	// Left lists captured OSDs that now belong to another node.
	Left []int `json:"left,omitempty"`
	// Deployments and Entry are set if EKCO could not read Rook either. NoRook is true if Rook no longer exists.
	Deployments []rook.OSDDeployment `json:"deployments,omitempty"`
	Entry       *rook.StorageNode    `json:"entry,omitempty"`
	NoRook      bool                 `json:"no_rook,omitempty"`
}

// lostStorage returns the captured facts without the OSDs that EKCO must not touch.
func lostStorage(record journal.ActionRecord) (NodeIdentity, StorageFacts, error) {
	node, storage, err := capturedStorage(record)
	storage.OSDs = slices.DeleteFunc(slices.Clone(storage.OSDs), func(osd OSDFacts) bool { return record.Left[ceph.Names(osd.ID)] != "" })
	return node, storage, err
}

// capturedStorage returns the captured facts together with the facts that EKCO found later.
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

// readView reads the node's remaining data in Ceph and Rook.
func (p storagePart) readView(ctx context.Context, record journal.ActionRecord) (storageView, error) {
	var view storageView
	var err error
	if view.node, view.StorageFacts, err = lostStorage(record); err != nil {
		return storageView{}, err
	}
	view.leftReasons, view.live = record.Left, journal.PurgeInputOf(record.Request).Live
	if view.absent {
		return view, nil
	}
	// Read Ceph first, so that concurrent reads share one process.
	var treeErr error
	parallel.Run(
		func() { view.tree, treeErr = p.Ceph.Tree(ctx) },
		func() { view.deployments, err = p.allDeployments(ctx, view.node) },
	)
	switch {
	case treeErr != nil && p.isRookGone(ctx):
		view.absent = true
		return view, nil
	case err != nil:
		return storageView{}, err
	case treeErr != nil:
		return storageView{}, fmt.Errorf("read the CRUSH tree: %w", treeErr)
	}
	// Read the Nodes last: a joining machine has a Node before Rook or Ceph know it.
	view.newOwners, err = p.newOwners(ctx, view.node)
	return view, err
}

// remains returns the present state of the OSD, and whether EKCO must still remove it. The same id with another UUID is
// another OSD. If another machine has the OSD now, EKCO keeps it; kept is the reason.
func (v storageView) remains(osd OSDFacts) (now ceph.OSD, kept string, remains bool) {
	now, there := v.tree.OSD(osd.ID)
	switch {
	case !there, now.IsOther(osd.Ref), osd.Gone && now.Exists:
		return now, "", false
	}
	kept = v.onOtherMachine(osd.Ref)
	return now, kept, kept == ""
}

// remaining returns the OSDs that EKCO must still remove.
func (v storageView) remaining() []ceph.OSD {
	var osds []ceph.OSD
	for _, osd := range v.OSDs {
		if now, _, remains := v.remains(osd); remains {
			osds = append(osds, now)
		}
	}
	return osds
}
