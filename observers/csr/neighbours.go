package csr

import (
	"hash/maphash"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
)

// Neighbours notices changes of Nodes that matter for decisions about requests: addresses, role, loss, creation and
// deletion. Most of these are not facts of the node. It gets the Nodes from the source of nodes, so it sends no
// requests. Create it with [NewNeighbours]. It is safe for concurrent use.
type Neighbours struct {
	seed maphash.Seed

	mu      sync.Mutex
	nodes   map[string]uint64
	changed func()
}

var _ observers.Sink = (*Neighbours)(nil)

// NewNeighbours returns a Neighbours without Nodes.
func NewNeighbours() *Neighbours {
	return &Neighbours{seed: maphash.MakeSeed(), nodes: make(map[string]uint64), changed: func() {}}
}

// setChanged sets the function to call after a change. It must not block.
func (n *Neighbours) setChanged(changed func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = changed
}

// Example implements [observers.Sink].
func (n *Neighbours) Example() runtime.Object { return &corev1.Node{} }

// Seen implements [observers.Sink].
func (n *Neighbours) Seen(obj runtime.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.see(obj) {
		n.changed()
	}
}

// Gone implements [observers.Sink].
func (n *Neighbours) Gone(obj runtime.Object) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.nodes, node.Name)
	n.changed()
}

// All implements [observers.Sink].
func (n *Neighbours) All(objs []runtime.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.nodes
	n.nodes = make(map[string]uint64, len(objs))
	changed := false
	for _, obj := range objs {
		if node, ok := obj.(*corev1.Node); ok {
			was, known := before[node.Name]
			n.nodes[node.Name] = n.digest(node)
			changed = changed || !known || was != n.nodes[node.Name]
		}
	}
	if changed || len(n.nodes) != len(before) {
		n.changed()
	}
}

// see reports whether the Node has changed. The caller must hold mu.
func (n *Neighbours) see(obj runtime.Object) bool {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return false
	}
	was, known := n.nodes[node.Name]
	n.nodes[node.Name] = n.digest(node)
	return !known || was != n.nodes[node.Name]
}

// digest returns a hash of all properties of the Node that matter.
func (n *Neighbours) digest(node *corev1.Node) uint64 {
	facts := kube.NodeOf(node).Facts
	role := string(facts.Role)
	if _, lost := facts.Unreachable(); lost {
		role += " lost"
	}
	var hash maphash.Hash
	hash.SetSeed(n.seed)
	write := func(text string) {
		hash.WriteString(text)
		hash.WriteByte(0)
	}
	write(string(node.UID))
	write(role)
	for _, address := range node.Status.Addresses {
		write(string(address.Type))
		write(address.Address)
	}
	return hash.Sum64()
}
