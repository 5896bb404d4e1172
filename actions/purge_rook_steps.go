package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/internal/kube"
)

// removeDeployment removes the Deployment of the captured UID.
type removeDeployment storagePart

// Prove implements [Step].
func (s removeDeployment) Prove(ctx context.Context, step StepContext) (Proof, error) {
	var captured OSDDeployment
	if err := step.Input(&captured); err != nil {
		return Proof{}, err
	}
	deployments, err := s.Rook.OSDDeployments(ctx)
	if err != nil {
		return Proof{}, fmt.Errorf("look for Deployment rook-ceph/%s: %w", captured.Name, missing(err, "list", "deployments in rook-ceph"))
	}
	if slices.ContainsFunc(deployments, func(d OSDDeployment) bool { return d.UID == captured.UID }) {
		return Proof{Missing: fmt.Sprintf("Deployment rook-ceph/%s still exists; look for finalizers on it", captured.Name)}, nil
	}
	return Proof{Done: true}, nil
}

// Do implements [Step].
func (s removeDeployment) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	var captured OSDDeployment
	if err := step.Input(&captured); err != nil {
		return nil, err
	}
	if err := deleted(s.Rook.RemoveOSDDeployment(ctx, captured.Name, captured.UID)); err != nil {
		return nil, fmt.Errorf("remove Deployment rook-ceph/%s: %w", captured.Name, missing(err, "update and delete", "deployments in rook-ceph"))
	}
	return nil, nil
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
	if err := s.Rook.RemoveStorageNode(ctx, *entry); err != nil {
		return nil, fmt.Errorf("remove node %s from the CephCluster: %w", entry.Name, missing(err, "patch", "cephclusters"))
	}
	return nil, nil
}

// find returns the node's entry, nil when there is none to remove; kept says
// why one is left.
func (s removeEntry) find(ctx context.Context, step StepContext) (entry *StorageNode, kept string, err error) {
	facts, err := purgeFacts(step.Action)
	if err != nil {
		return nil, "", err
	}
	replacement, err := facts.Node.replacement(ctx, s.api)
	if err != nil {
		return nil, "", err
	}
	nodes, err := s.Rook.StorageNodes(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read the storage nodes of the CephCluster: %w", missing(err, "get", "cephclusters"))
	}
	found, listed := entryOf(nodes, facts.Node)
	switch {
	case !listed:
		return nil, "", nil
	case replacement != "":
		return nil, "node " + facts.Node.Name + " has been replaced; the entry is the new one's", nil
	case nodes.UseAllNodes:
		return nil, "useAllNodes is set", nil
	}
	return &found, "", nil
}
