package rooksim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/sim"
)

// ClusterUID is the UID of the CephCluster that [New] makes.
const ClusterUID = "uid-ceph-cluster"

// Exec simulates a program in a pod.
type Exec func(ctx context.Context, pod rook.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)

// Rook is a simulated Rook. Make one with [New]. Its methods are safe for
// concurrent use; its exported fields must be set before the first call.
//
// The names of its effects are "scale-down NAME", "delete-deployment NAME",
// "remove-storage-node NAME" and "add-storage-node NAME".
type Rook struct {
	sim.APIServer
	// OnExec simulates programs. Without it every exec fails.
	OnExec Exec

	mu           sync.Mutex
	installation rook.Installation
	clusterUID   string
	useAllNodes  bool
	nodes        []listed
	deployments  map[string]rook.OSDDeployment
	pods         map[string]podOf
	uids         int
	toolsPod     bool
}

// podOf is a pod's node and OSD.
type podOf struct {
	node string
	osd  int
}

type listed struct {
	name  string
	entry json.RawMessage
}

// New returns a Rook 1.10.8 with a CephCluster that lists no nodes, no OSDs and
// a running tools pod.
func New() *Rook {
	return &Rook{
		APIServer: sim.NewAPIServer(),
		installation: rook.Installation{Present: true, Version: rook.Version{
			Known: true, Major: 1, Minor: 10, Patch: 8,
		}},
		clusterUID: ClusterUID, deployments: make(map[string]rook.OSDDeployment), pods: make(map[string]podOf), toolsPod: true,
	}
}

// SetInstallation sets what Detect finds.
func (r *Rook) SetInstallation(installation rook.Installation) {
	sim.Set(&r.mu, &r.installation, installation)
}

// AddOSD adds the Deployment rook-ceph-osd-ID, with one replica, and returns it.
func (r *Rook) AddOSD(id int, hostname string) rook.OSDDeployment {
	return r.AddOSDOf(ceph.Ref{ID: id}, hostname)
}

// AddOSDOf is AddOSD for a Deployment with the OSD's UUID.
func (r *Rook) AddOSDOf(osd ceph.Ref, hostname string) rook.OSDDeployment {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uids++
	name := fmt.Sprintf("rook-ceph-osd-%d", osd.ID)
	added := rook.OSDDeployment{
		Name: name, UID: fmt.Sprintf("uid-%s-%d", name, r.uids), OSD: osd.ID, UUID: osd.UUID, Hostname: hostname, Replicas: 1,
	}
	r.deployments[name] = added
	return added
}

// BindOSD binds the Deployment of an OSD to another machine, as if Rook found its disk there.
func (r *Rook) BindOSD(id int, hostname string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := fmt.Sprintf("rook-ceph-osd-%d", id)
	d := r.deployments[name]
	d.Hostname = hostname
	r.deployments[name] = d
}

// AddOSDPod adds the pod rook-ceph-osd-ID-0 on a Node, independent of its Deployment.
func (r *Rook) AddOSDPod(id int, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[fmt.Sprintf("rook-ceph-osd-%d-0", id)] = podOf{node: node, osd: id}
}

// RemoveOSDPod removes the pod of an OSD.
func (r *Rook) RemoveOSDPod(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, fmt.Sprintf("rook-ceph-osd-%d-0", id))
}

// Entry returns the entry of a listed node.
func (r *Rook) Entry(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, node := range r.nodes {
		if node.name == name {
			return string(node.entry)
		}
	}
	return ""
}

// RemoveOSD deletes the Deployment of an OSD like another client.
func (r *Rook) RemoveOSD(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deployments, fmt.Sprintf("rook-ceph-osd-%d", id))
}

// ListNode puts a node on the CephCluster's list.
func (r *Rook) ListNode(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, _ := json.Marshal(map[string]string{"name": name}) // it cannot fail
	r.nodes = append(r.nodes, listed{name, entry})
}

// EditNode replaces the entry of a listed node.
func (r *Rook) EditNode(name, entry string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.nodes {
		if r.nodes[i].name == name {
			r.nodes[i].entry = json.RawMessage(entry)
		}
	}
}

// UseAllNodes sets whether Rook ignores the list.
func (r *Rook) UseAllNodes(all bool) {
	sim.Set(&r.mu, &r.useAllNodes, all)
}

// ReplaceCluster replaces the CephCluster. The list stays.
func (r *Rook) ReplaceCluster(uid string) {
	sim.Set(&r.mu, &r.clusterUID, uid)
}

// Deployments returns the Deployments of all OSDs, sorted by name, even if listing is forbidden.
func (r *Rook) Deployments() []rook.OSDDeployment {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []rook.OSDDeployment
	for _, name := range slices.Sorted(maps.Keys(r.deployments)) {
		found = append(found, r.deployments[name])
	}
	return found
}

// LoseToolsPod stops the tools pod, or starts it again.
func (r *Rook) LoseToolsPod(lost bool) {
	sim.Set(&r.mu, &r.toolsPod, !lost)
}

// Nodes returns the names on the CephCluster's list.
func (r *Rook) Nodes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, node := range r.nodes {
		names = append(names, node.name)
	}
	return names
}
