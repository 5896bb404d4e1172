package actions

import (
	"context"
	"encoding/json"
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
		return Proof{Missing: fmt.Sprintf("Deployment rook-ceph/%s still exists; look for finalizers on it", captured.Name)}, nil
	}
	return Proof{Done: true}, nil
}

// Do implements [Step].
func (s removeDeployment) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	var captured rook.OSDDeployment
	if err := step.Input(&captured); err != nil {
		return nil, err
	}
	if err := deleted(s.Rook.ScaleDown(ctx, captured.Name, captured.UID)); err != nil {
		return nil, err
	}
	return nil, deleted(s.Rook.DeleteDeployment(ctx, captured.Name, captured.UID))
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
	_, err = s.Rook.RemoveStorageNode(ctx, *entry)
	return nil, err
}

// find returns the node's entry, nil when there is none to remove; kept says
// why one is left.
func (s removeEntry) find(ctx context.Context, step StepContext) (entry *rook.StorageNode, kept string, err error) {
	facts, err := purgeFacts(step.Action)
	if err != nil {
		return nil, "", err
	}
	replacement, err := facts.Node.replacement(ctx, s.api)
	if err != nil {
		return nil, "", err
	}
	now, err := s.Rook.StorageNode(ctx, facts.Node.names()...)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("look for node %s in the CephCluster: %w", facts.Node.Name, err)
	case now.Name == "":
		return nil, "", nil
	case replacement != "":
		return nil, "node " + facts.Node.Name + " has been replaced; the entry is the new one's", nil
	case now.UseAllNodes:
		return nil, "useAllNodes is set", nil
	case now.ClusterUID != facts.Storage.Entry.ClusterUID:
		return nil, "the CephCluster is another one now", nil
	}
	return &now, "", nil
}
