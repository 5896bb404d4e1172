package kubesim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
)

// ClusterUID is the UID of namespace kube-system in every new cluster.
const ClusterUID = "uid-kube-system"

// Cluster is a simulated cluster. Make one with [New]. Its methods are safe for
// concurrent use.
//
// The names of its effects are "delete-node NAME", "delete-pod NAMESPACE/NAME",
// "write-mirror", "write-mirror-part", "delete-mirror-part" and "write-cluster-status".
type Cluster struct {
	sim.APIServer

	mu      sync.Mutex
	nodes   map[string]*kube.Node
	pods    map[string]*pod
	uid     string
	uids    int
	mirror  []byte
	version int
	parts   map[string][]byte
	kubeadm kubeadmState
	events  []RecordedEvent
	changed chan struct{}
	// clockAhead is how far the API server's clock is ahead of time.Now.
	clockAhead time.Duration
}

type pod struct {
	kube.Pod
	// stuck pods have a finalizer: deleting them has no effect yet.
	stuck bool
}

// RecordedEvent is a Kubernetes Event that a caller recorded.
type RecordedEvent struct {
	About journal.Subject
	Note  kube.Note
}

// New returns an empty cluster whose API answers at once.
func New() *Cluster {
	return &Cluster{
		APIServer: sim.NewAPIServer(), uid: ClusterUID,
		nodes: make(map[string]*kube.Node), pods: make(map[string]*pod), changed: make(chan struct{}),
		parts: make(map[string][]byte),
	}
}

// change runs f under the lock and notifies waiters.
func (c *Cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Snapshot returns all nodes and pods, sorted by name, and a channel that is
// closed at the next change.
func (c *Cluster) Snapshot() (nodes []kube.Node, pods []kube.Pod, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range c.nodes {
		nodes = append(nodes, clone(*node))
	}
	for _, pod := range c.pods {
		pods = append(pods, pod.Pod)
	}
	slices.SortFunc(nodes, func(a, b kube.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(pods, func(a, b kube.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return nodes, pods, c.changed
}

// Events returns the Kubernetes Events that callers recorded.
func (c *Cluster) Events() []RecordedEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// newUID returns a UID that no object has had. It expects mu to be held.
func (c *Cluster) newUID(name string) string {
	c.uids++
	return fmt.Sprintf("uid-%s-%d", name, c.uids)
}

func clone(node kube.Node) kube.Node {
	node.Facts.Taints = slices.Clone(node.Facts.Taints)
	return node
}
