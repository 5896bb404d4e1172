package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
)

// inOSDs undoes out-osds: it marks the OSDs that were in at the time of capture as in again, with their former weight.
type inOSDs storagePart

func (s inOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	osds, err := s.osdsToMarkIn(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case len(osds) > 0:
		return actions.Proof{Missing: ceph.Names(osds[0].ID) + " is still out"}, nil
	}
	return actions.Proof{Done: true}, nil
}

func (s inOSDs) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	osds, err := s.osdsToMarkIn(ctx, step)
	if err != nil || len(osds) == 0 {
		return nil, err
	}
	var whole []int
	var failures []error
	for _, osd := range osds {
		if osd.weight() == 1 {
			whole = append(whole, osd.ID)
			continue
		}
		failures = append(failures, s.Ceph.Reweight(ctx, osd.ID, osd.weight()))
	}
	if len(whole) > 0 {
		failures = append(failures, s.Ceph.In(ctx, whole...))
	}
	return nil, errors.Join(failures...)
}

// osdsToMarkIn returns the captured OSDs that were in and are out now. It includes OSDs that another machine has now,
// because this purge marked them out.
func (s inOSDs) osdsToMarkIn(ctx context.Context, step actions.StepContext) (osds []OSDFacts, err error) {
	_, captured, err := capturedStorage(step.Action)
	if err != nil || captured.absent {
		return nil, err
	}
	tree, err := s.Ceph.Tree(ctx)
	switch {
	case err != nil && storagePart(s).isRookGone(ctx):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the CRUSH tree: %w", err)
	}
	for _, osd := range captured.OSDs {
		now, there := tree.OSD(osd.ID)
		same := there && now.Exists && !now.IsOther(osd.Ref)
		if same && !now.In() && osd.weight() > 0 {
			osds = append(osds, osd)
		}
	}
	return osds, nil
}

// restoreEntry undoes remove-storage-entry: it adds the removed entry to the list again. Rook then recreates the
// Deployments of the OSDs.
type restoreEntry storagePart

func (s restoreEntry) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	entry, kept, err := s.entryToRestore(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case kept != "":
		return actions.Proof{Done: true, Outputs: leftOutput("the node's entry in the CephCluster was not restored: " + kept)}, nil
	case entry == nil:
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: "the CephCluster does not list the node"}, nil
}

func (s restoreEntry) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	entry, _, err := s.entryToRestore(ctx, step)
	if err != nil || entry == nil {
		return nil, err
	}
	return nil, s.Rook.AddStorageNode(ctx, *entry)
}

// entryToRestore returns the entry to restore, or nil. kept is the reason if an entry is not restored.
func (s restoreEntry) entryToRestore(ctx context.Context, step actions.StepContext) (entry *rook.StorageNode, kept string, err error) {
	node, captured, err := capturedStorage(step.Action)
	if err != nil || captured.Entry == nil || captured.Entry.Name == "" {
		return nil, "", err // EKCO adds only nodes that were listed
	}
	var removal struct {
		Left     string          `json:"left"`
		Unlisted bool            `json:"unlisted"`
		Removed  json.RawMessage `json:"removed"`
	}
	if _, err := step.Output(doesRemoveEntry, &removal); err != nil || removal.Left != "" {
		return nil, "", err
	}
	newOwners, err := storagePart(s).newOwners(ctx, node)
	if err != nil {
		return nil, "", err
	}
	now, err := s.Rook.StorageNode(ctx, node.names()...)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("look for node %s in the CephCluster: %w", node.Name, err)
	case now.Name != "":
		return nil, "", nil
	case removal.Unlisted:
		return nil, "it was gone before the purge could remove it", nil
	case newOwners.hostname != "":
		return nil, newOwners.hostname + " has the hostname " + node.hostname() + " now", nil
	case now.UseAllNodes:
		return nil, "useAllNodes is set", nil
	case now.ClusterUID != captured.Entry.ClusterUID:
		return nil, "the CephCluster was replaced", nil
	}
	restored := *captured.Entry
	if len(removal.Removed) > 0 {
		restored.Entry = removal.Removed
	}
	return &restored, "", nil
}
