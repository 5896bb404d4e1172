package rooksim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/sim"
)

var _ rook.API = (*Rook)(nil)

// The verbs that can be forbidden.
const (
	GetCephClusters   = "get cephclusters"
	PatchCephClusters = "patch cephclusters"
	ListPods          = "list pods"
	CreateExec        = "create pods/exec"
	ListDeployments   = "list deployments"
	UpdateDeployments = "update deployments"
	DeleteDeployments = "delete deployments"
)

// effect runs f, which changes something, if the call gets through.
func (r *Rook) effect(ctx context.Context, verb, name string, f func() (changed bool, err error)) error {
	return sim.Change(ctx, &r.APIServer, verb, name, func() (changed bool, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return f()
	})
}

// Detect implements [rook.API].
func (r *Rook) Detect(ctx context.Context) (rook.Installation, error) {
	if err := sim.Reach(ctx, &r.APIServer, GetCephClusters); err != nil {
		return rook.Installation{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.installation, nil
}

// ToolsPod implements [rook.API].
func (r *Rook) ToolsPod(ctx context.Context, _ rook.Version) (rook.Pod, error) {
	if err := sim.Reach(ctx, &r.APIServer, ListPods); err != nil {
		return rook.Pod{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.toolsPod {
		return rook.Pod{}, rook.ErrNoToolsPod
	}
	return rook.Pod{Name: "rook-ceph-tools-0", Container: "rook-ceph-tools"}, nil
}

// Exec implements [rook.API].
func (r *Rook) Exec(ctx context.Context, pod rook.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	if err := sim.Reach(ctx, &r.APIServer, CreateExec); err != nil {
		return nil, nil, 0, err
	}
	if r.OnExec == nil {
		return nil, nil, 0, fmt.Errorf("exec in %s: %w: the test says nothing about %q", pod.Name, kube.ErrUnavailable, argv)
	}
	return r.OnExec(ctx, pod, argv)
}

// Interact implements [rook.API]. It always fails.
func (r *Rook) Interact(ctx context.Context, pod rook.Pod, argv []string, _ io.Reader, _, _ io.Writer) (exitCode int, err error) {
	if err := sim.Reach(ctx, &r.APIServer, CreateExec); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("exec in %s: %w: nothing here converses, nor does %q", pod.Name, kube.ErrUnavailable, argv)
}

// OSDDeployments implements [rook.API].
func (r *Rook) OSDDeployments(ctx context.Context) ([]rook.OSDDeployment, error) {
	if err := sim.Reach(ctx, &r.APIServer, ListDeployments); err != nil {
		return nil, err
	}
	return r.Deployments(), nil
}

// ScaleDown implements [rook.API].
func (r *Rook) ScaleDown(ctx context.Context, name, uid string) error {
	return r.effect(ctx, UpdateDeployments, "scale-down "+name, func() (bool, error) {
		if err := r.check(name, uid); err != nil {
			return false, err
		}
		d := r.deployments[name]
		changed := d.Replicas != 0
		d.Replicas = 0
		r.deployments[name] = d
		return changed, nil
	})
}

// DeleteDeployment implements [rook.API].
func (r *Rook) DeleteDeployment(ctx context.Context, name, uid string) error {
	return r.effect(ctx, DeleteDeployments, "delete-deployment "+name, func() (bool, error) {
		if err := r.check(name, uid); err != nil {
			return false, err
		}
		delete(r.deployments, name)
		return true, nil
	})
}

// OSDPods implements [rook.API].
func (r *Rook) OSDPods(ctx context.Context, node string) ([]rook.OSDPod, error) {
	if err := sim.Reach(ctx, &r.APIServer, ListPods); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []rook.OSDPod
	for name, on := range r.pods {
		if on.node == node {
			found = append(found, rook.OSDPod{Name: name, OSD: on.osd})
		}
	}
	slices.SortFunc(found, func(a, b rook.OSDPod) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// AddStorageNode implements [rook.API].
func (r *Rook) AddStorageNode(ctx context.Context, node rook.StorageNode) error {
	if node.Name == "" {
		return nil
	}
	return r.effect(ctx, PatchCephClusters, "add-storage-node "+node.Name, func() (bool, error) {
		there := slices.ContainsFunc(r.nodes, func(l listed) bool { return l.name == node.Name })
		if there || r.useAllNodes || r.clusterUID != node.ClusterUID || !r.installation.Present {
			return false, nil
		}
		r.nodes = append(r.nodes, listed{node.Name, node.Entry})
		return true, nil
	})
}

// check expects mu to be held.
func (r *Rook) check(name, uid string) error {
	d, ok := r.deployments[name]
	switch {
	case !ok:
		return fmt.Errorf("deployment %s: %w", name, kube.ErrNotFound)
	case d.UID != uid:
		return fmt.Errorf("deployment %s has uid %s: %w", name, d.UID, kube.ErrOtherUID)
	}
	return nil
}

// StorageNode implements [rook.API].
func (r *Rook) StorageNode(ctx context.Context, names ...string) (rook.StorageNode, error) {
	if err := sim.Reach(ctx, &r.APIServer, GetCephClusters); err != nil {
		return rook.StorageNode{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.installation.Present {
		return rook.StorageNode{}, nil
	}
	node := rook.StorageNode{ClusterUID: r.clusterUID, UseAllNodes: r.useAllNodes}
	for _, listed := range r.nodes {
		if node.Name == "" && slices.Contains(names, listed.name) {
			node.Name, node.Entry = listed.name, bytes.Clone(listed.entry)
		}
	}
	return node, nil
}

// RemoveStorageNode implements [rook.API].
func (r *Rook) RemoveStorageNode(ctx context.Context, node rook.StorageNode) (json.RawMessage, error) {
	if node.Name == "" {
		return nil, nil
	}
	var removed json.RawMessage
	err := r.effect(ctx, PatchCephClusters, "remove-storage-node "+node.Name, func() (bool, error) {
		i := slices.IndexFunc(r.nodes, func(l listed) bool { return l.name == node.Name })
		if i < 0 || r.useAllNodes || r.clusterUID != node.ClusterUID || !r.installation.Present {
			return false, nil
		}
		removed = r.nodes[i].entry
		r.nodes = slices.Delete(r.nodes, i, i+1)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return removed, nil
}
