package actions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
)

// rook is a simulated [actions.Rook].
type rook struct {
	beforeEffect func(effect string)

	mu          sync.Mutex
	absent      bool
	broken      error
	nodes       actions.StorageNodes
	deployments []actions.OSDDeployment
	uids        int
	changes     []string
}

// addOSD adds the Deployment of an OSD on a node.
func (r *rook) addOSD(hostname string, id int) actions.OSDDeployment {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uids++
	d := actions.OSDDeployment{
		Name: "rook-ceph-osd-" + strconv.Itoa(id), UID: fmt.Sprintf("uid-osd-%d-%d", id, r.uids), OSD: id, Hostname: hostname,
	}
	r.deployments = append(r.deployments, d)
	return d
}

func (r *rook) listNode(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes.Nodes = append(r.nodes.Nodes, actions.StorageNode{
		Name: name, Value: json.RawMessage(`{"name":"` + name + `","config":{"osdsPerDevice":"1"}}`),
	})
}

// listed returns the names of the storage nodes.
func (r *rook) listed() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.nodes.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// onNode returns the names of the Deployments on a node.
func (r *rook) onNode(hostname string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.deployments {
		if d.Hostname == hostname {
			names = append(names, d.Name)
		}
	}
	return names
}

func (r *rook) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

func (r *rook) StorageNodes(context.Context) (actions.StorageNodes, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.absent {
		return actions.StorageNodes{}, fmt.Errorf("cephcluster: %w", kube.ErrNotFound)
	}
	nodes := r.nodes
	nodes.Nodes = slices.Clone(nodes.Nodes)
	return nodes, r.broken
}

func (r *rook) OSDDeployments(context.Context) ([]actions.OSDDeployment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deployments), r.broken
}

func (r *rook) RemoveStorageNode(_ context.Context, entry actions.StorageNode) error {
	return r.effect("remove-entry "+entry.Name, func() error {
		at := slices.IndexFunc(r.nodes.Nodes, func(n actions.StorageNode) bool { return n.Name == entry.Name && bytes.Equal(n.Value, entry.Value) })
		if at < 0 {
			return kube.ErrConflict
		}
		r.nodes.Nodes = slices.Delete(slices.Clone(r.nodes.Nodes), at, at+1)
		return nil
	})
}

func (r *rook) RemoveOSDDeployment(_ context.Context, name, uid string) error {
	return r.effect("remove-deployment "+name, func() error {
		at := slices.IndexFunc(r.deployments, func(d actions.OSDDeployment) bool { return d.Name == name })
		switch {
		case at < 0:
			return kube.ErrNotFound
		case r.deployments[at].UID != uid:
			return kube.ErrOtherUID
		}
		r.deployments = slices.Delete(slices.Clone(r.deployments), at, at+1)
		return nil
	})
}

func (r *rook) effect(name string, change func() error) error {
	if r.beforeEffect != nil {
		r.beforeEffect(name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	err := change()
	if err == nil {
		r.changes = append(r.changes, name)
	}
	return err
}

// changed returns how many changes were made.
func (r *rook) changed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changes)
}
