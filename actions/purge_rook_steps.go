package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/internal/rook"
)

// removeDeployment removes the Deployment of the captured UID.
type removeDeployment storagePart

// Prove implements [Step].
func (s removeDeployment) Prove(ctx context.Context, step StepContext) (Proof, error) {
	var captured rook.OSDDeployment
	if err := step.Input(&captured); err != nil {
		return Proof{}, err
	}
	facts, err := purgeFacts(step.Action)
	if err != nil {
		return Proof{}, err
	}
	deployments, err := storagePart(s).deployments(ctx, facts.Node)
	if err != nil {
		return Proof{}, err
	}
	if slices.ContainsFunc(deployments, func(d rook.OSDDeployment) bool { return d.UID == captured.UID }) {
		return Proof{Missing: stillThere(captured)}, nil
	}
	return Proof{Done: true}, nil
}

// Do implements [Step].
func (s removeDeployment) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	var captured rook.OSDDeployment
	if err := step.Input(&captured); err != nil {
		return nil, err
	}
	return nil, storagePart(s).remove(ctx, captured)
}

// remove scales a Deployment down, so that the OSD ends in order, and deletes it.
func (p storagePart) remove(ctx context.Context, d rook.OSDDeployment) error {
	if err := deleted(p.Rook.ScaleDown(ctx, d.Name, d.UID)); err != nil {
		return err
	}
	return deleted(p.Rook.DeleteDeployment(ctx, d.Name, d.UID))
}

func stillThere(d rook.OSDDeployment) string {
	return fmt.Sprintf("Deployment rook-ceph/%s still exists; look for finalizers on it", d.Name)
}

// removeFound removes the Deployments that were found only after the plan.
type removeFound storagePart

// Prove implements [Step].
func (s removeFound) Prove(ctx context.Context, step StepContext) (Proof, error) {
	node, lost, err := lostStorage(step.Action)
	if err != nil || len(lost.Deployments) == 0 {
		return Proof{Done: err == nil}, err
	}
	deployments, err := storagePart(s).deployments(ctx, node)
	if err != nil {
		return Proof{}, err
	}
	for _, found := range lost.Deployments {
		if slices.ContainsFunc(deployments, func(d rook.OSDDeployment) bool { return d.UID == found.UID }) {
			return Proof{Missing: stillThere(found)}, nil
		}
	}
	return Proof{Done: true}, nil
}

// Do implements [Step]. One that cannot be removed does not keep the others.
func (s removeFound) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	_, lost, err := lostStorage(step.Action)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, found := range lost.Deployments {
		failures = append(failures, storagePart(s).remove(ctx, found))
	}
	return nil, errors.Join(failures...)
}

// removeEntry takes the node out of the CephCluster's list.
type removeEntry storagePart

// Atomic implements [AtomicStep]: the list is patched in one call.
func (removeEntry) Atomic() bool { return true }

// Prove implements [Step].
func (s removeEntry) Prove(ctx context.Context, step StepContext) (Proof, error) {
	entry, kept, err := s.find(ctx, step)
	switch {
	case err != nil:
		return Proof{}, err
	case kept != "":
		return Proof{Done: true, Outputs: left(kept)}, nil
	case entry == nil:
		return Proof{Done: true}, nil
	}
	return Proof{Missing: "the CephCluster still lists the node"}, nil
}

// Do implements [Step].
func (s removeEntry) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	entry, _, err := s.find(ctx, step)
	if err != nil || entry == nil {
		return nil, err
	}
	removed, err := s.Rook.RemoveStorageNode(ctx, *entry)
	if err != nil {
		return nil, err
	}
	return removedEntry(removed)
}

// longestRemoved is how much of an entry is put on record, in bytes. What was
// captured of a longer one is in the plan.
const longestRemoved = 4 << 10

// removedEntry puts on record what was removed: it may have been edited since it
// was captured.
func removedEntry(entry json.RawMessage) (json.RawMessage, error) {
	if len(entry) == 0 || len(entry) > longestRemoved {
		return nil, nil
	}
	outputs, err := json.Marshal(map[string]json.RawMessage{"removed": entry})
	if err != nil {
		return nil, fmt.Errorf("write down the removed entry of the CephCluster: %w", err)
	}
	return outputs, nil
}

// find returns the node's entry, nil when there is none to remove; kept says
// why one is left.
func (s removeEntry) find(ctx context.Context, step StepContext) (entry *rook.StorageNode, kept string, err error) {
	node, lost, err := lostStorage(step.Action)
	if err != nil || lost.Entry == nil {
		return nil, "", err
	}
	replacement, err := node.replacement(ctx, s.api)
	if err != nil {
		return nil, "", err
	}
	now, err := s.Rook.StorageNode(ctx, node.names()...)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("look for node %s in the CephCluster: %w", node.Name, err)
	case now.Name == "":
		return nil, "", nil
	case replacement != "":
		return nil, "node " + node.Name + " has been replaced; the entry is the new one's", nil
	case now.UseAllNodes:
		return nil, "useAllNodes is set", nil
	case now.ClusterUID != lost.Entry.ClusterUID:
		return nil, "the CephCluster is another one now", nil
	}
	return &now, "", nil
}
