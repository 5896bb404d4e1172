package actions

import (
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/sidebyside"
	"github.com/replicatedhq/ekco/journal"
)

// storageView is what is left of a node in Ceph now.
type storageView struct {
	StorageFacts
	node NodeIdentity
	tree ceph.Tree
	// replaced is set when another Node has the name now; claimed holds the ids of
	// OSDs that have a Deployment under that name which was not captured.
	replaced bool
	claimed  map[int]bool
}

// foundOSDs is what the step find-osds leaves: the facts that could not be
// captured.
type foundOSDs struct {
	OSDs      []OSDFacts `json:"osds,omitempty"`
	CrushHost string     `json:"crush_host,omitempty"`
	// Left are captured OSDs that turned out to be another node's now.
	Left []int `json:"left,omitempty"`
	// Deployments and Entry are there when Rook could not be read either; NoRook
	// when there is none, or none any more.
	Deployments []rook.OSDDeployment `json:"deployments,omitempty"`
	Entry       *rook.StorageNode    `json:"entry,omitempty"`
	NoRook      bool                 `json:"no_rook,omitempty"`
}

// lostStorage returns the captured facts, completed by what was found later.
func lostStorage(record journal.ActionRecord) (NodeIdentity, StorageFacts, error) {
	facts, err := purgeFacts(record)
	if err != nil {
		return NodeIdentity{}, StorageFacts{}, err
	}
	if facts.Storage == nil {
		return facts.Node, StorageFacts{}, nil
	}
	var found foundOSDs
	later, err := StepContext{Action: record}.Output(doesFindOSDs, &found)
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
	if view.absent {
		return view, nil
	}
	// Ceph is asked at once, as others do that look at the same moment.
	var treeErr error
	sidebyside.Run(
		func() { view.tree, treeErr = p.Ceph.Tree(ctx) },
		func() { view.replaced, view.claimed, err = p.replaced(ctx, view.node, view.Deployments) },
	)
	switch {
	case treeErr != nil && p.gone(ctx):
		view.absent = true
	case err != nil:
		return storageView{}, err
	case treeErr != nil:
		return storageView{}, fmt.Errorf("read the CRUSH tree: %w", treeErr)
	}
	return view, nil
}

// replaced reports whether another Node has the name, and what it claims.
func (p storagePart) replaced(ctx context.Context, node NodeIdentity, captured []rook.OSDDeployment) (bool, map[int]bool, error) {
	replacement, err := node.replacement(ctx, p.api)
	if err != nil || replacement == "" {
		return false, nil, err
	}
	claimed, err := p.claims(ctx, node, captured)
	return true, claimed, err
}

// claims returns the OSDs that have a Deployment under the node's name which was
// not captured.
func (p storagePart) claims(ctx context.Context, node NodeIdentity, captured []rook.OSDDeployment) (map[int]bool, error) {
	deployments, err := p.deployments(ctx, node)
	if err != nil {
		return nil, err
	}
	claimed := make(map[int]bool)
	for _, d := range deployments {
		if !slices.ContainsFunc(captured, func(c rook.OSDDeployment) bool { return c.UID == d.UID }) {
			claimed[d.OSD] = true
		}
	}
	return claimed, nil
}

// remains returns the OSD as it is now, if it is still to be removed. One of the
// same id and another UUID is another OSD. One that runs, or is about to, on a
// node that replaced the lost one has its disk, and stays; kept says so.
func (v storageView) remains(osd OSDFacts) (now ceph.OSD, kept string, remains bool) {
	now, there := v.tree.OSD(osd.ID)
	switch {
	case !there, now.IsOther(osd.Ref), osd.Gone && now.Exists:
		return now, "", false
	case v.replaced && (now.Up || v.claimed[osd.ID]):
		return now, fmt.Sprintf("%s belongs to the node that replaced %s", ceph.Names(osd.ID), v.node.Name), false
	}
	return now, "", true
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
