package kubesim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// ClusterUID is the UID of namespace kube-system in every new cluster.
const ClusterUID = "uid-kube-system"

// Cluster is a simulated cluster. Make one with [New]. Its methods are safe for
// concurrent use; its exported fields must be set before the first call.
type Cluster struct {
	// BeforeEffect and AfterEffect, when set, are called around each call that
	// changes the cluster, with the effect's name: "delete-node NAME",
	// "delete-pod NAMESPACE/NAME", "write-mirror" or "write-cluster-status". They
	// are called outside of all locks, and only when the call gets through to the
	// API server.
	BeforeEffect, AfterEffect func(effect string)

	mu      sync.Mutex
	nodes   map[string]*kube.Node
	pods    map[string]*pod
	uid     string
	uids    int
	mirror  []byte
	version int
	kubeadm kubeadmState
	events  []Event
	effects []Effect

	outage    bool
	forbidden map[string]bool
	deaf      map[string]bool
	latency   time.Duration
	changed   chan struct{}
}

type pod struct {
	kube.Pod
	// stuck pods have a finalizer: deleting them has no effect yet.
	stuck bool
}

// Effect is a change that a caller made.
type Effect struct {
	Name string
	// Changed is false when the object was already as it should be.
	Changed bool
}

// Event is a Kubernetes Event that a caller recorded.
type Event struct {
	About journal.Subject
	Note  kube.Note
}

// New returns an empty cluster whose API answers at once.
func New() *Cluster {
	return &Cluster{
		uid: ClusterUID, nodes: make(map[string]*kube.Node), pods: make(map[string]*pod),
		forbidden: make(map[string]bool), deaf: make(map[string]bool), changed: make(chan struct{}),
	}
}

// change runs f under the lock and tells those who wait that something changed.
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

// Effects returns what callers changed, in order.
func (c *Cluster) Effects() []Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.effects)
}

// Count returns how many calls of an effect got through, whether or not they
// changed anything.
func (c *Cluster) Count(effect string) int {
	count := 0
	for _, e := range c.Effects() {
		if e.Name == effect {
			count++
		}
	}
	return count
}

// Events returns the Kubernetes Events that callers recorded.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// newUID expects mu to be held.
func (c *Cluster) newUID(name string) string {
	c.uids++
	return fmt.Sprintf("uid-%s-%d", name, c.uids)
}

func clone(node kube.Node) kube.Node {
	node.Facts.Taints = slices.Clone(node.Facts.Taints)
	return node
}
