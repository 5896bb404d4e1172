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

// inOSDs takes back out-osds: what was in when it was captured is marked in again,
// with the weight that it had.
type inOSDs storagePart

// Prove implements [actions.Step].
func (s inOSDs) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	osds, err := s.find(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case len(osds) > 0:
		return actions.Proof{Missing: ceph.Names(osds[0].ID) + " is still out"}, nil
	}
	return actions.Proof{Done: true}, nil
}

// Do implements [actions.Step].
func (s inOSDs) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	osds, err := s.find(ctx, step)
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

// find returns the captured OSDs that were in and are out, whoever has them now: it
// was this purge that marked them out.
func (s inOSDs) find(ctx context.Context, step actions.StepContext) (osds []OSDFacts, err error) {
	_, captured, err := capturedStorage(step.Action)
	if err != nil || captured.absent {
		return nil, err
	}
	tree, err := s.Ceph.Tree(ctx)
	switch {
	case err != nil && storagePart(s).gone(ctx):
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

// restoreEntry takes back remove-storage-entry: the entry goes back on the list as
// it was removed. The Deployments of the OSDs are for Rook to make again then.
type restoreEntry storagePart

// Prove implements [actions.Step].
func (s restoreEntry) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	entry, kept, err := s.find(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case kept != "":
		return actions.Proof{Done: true, Outputs: left("the node's entry in the CephCluster was not put back: " + kept)}, nil
	case entry == nil:
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: "the CephCluster does not list the node"}, nil
}

// Do implements [actions.Step].
func (s restoreEntry) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	entry, _, err := s.find(ctx, step)
	if err != nil || entry == nil {
		return nil, err
	}
	return nil, s.Rook.AddStorageNode(ctx, *entry)
}

// find returns the entry that is to be put back, nil if there is none; kept says
// why one is not.
func (s restoreEntry) find(ctx context.Context, step actions.StepContext) (entry *rook.StorageNode, kept string, err error) {
	node, captured, err := capturedStorage(step.Action)
	if err != nil || captured.Entry == nil || captured.Entry.Name == "" {
		return nil, "", err // what was not listed is not put back: a node that stays is listed anew
	}
	var removal struct {
		Left     string          `json:"left"`
		Unlisted bool            `json:"unlisted"`
		Removed  json.RawMessage `json:"removed"`
	}
	if _, err := step.Output(doesRemoveEntry, &removal); err != nil || removal.Left != "" {
		return nil, "", err
	}
	heirs, err := storagePart(s).heirs(ctx, node)
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
		return nil, "it was not listed when it was to be removed", nil
	case heirs.hostname != "":
		return nil, "the hostname " + node.hostname() + " is that of " + heirs.hostname + " now", nil
	case now.UseAllNodes:
		return nil, "useAllNodes is set", nil
	case now.ClusterUID != captured.Entry.ClusterUID:
		return nil, "the CephCluster is another one now", nil
	}
	restored := *captured.Entry
	if len(removal.Removed) > 0 {
		restored.Entry = removal.Removed
	}
	return &restored, "", nil
}
