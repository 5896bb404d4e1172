// Package hosttasksim simulates nodes whose kubelets run the pods of host tasks, over
// simulated objects of the Kubernetes API.
package hosttasksim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
)

// Namespace is that of the pods.
const Namespace = "kurl"

// Program is what becomes of a pod on a node. The zero value starts after a second, runs
// for three, and says that all is well.
type Program struct {
	// Start and Run are how long it takes; zero means a second, and three.
	Start, Run time.Duration
	// Waits is a reason for which the container waits for ever, instead of starting, and
	// Message what the kubelet says of it.
	Waits, Message string
	// Hangs has it run until its deadline.
	Hangs bool
	// Dies has it end with an exit code, without saying anything.
	Dies bool
	// Lines are what it logs, and Failed is why it failed, if it says so.
	Lines  []string
	Failed string
	// Silent has it end well and say nothing of it.
	Silent bool
	// Then returns why a task's second program, of another image, cannot run; nil if it can.
	Then func(image string) error
	// Trial is what it does after Runs if its task has [hosttask.Task.Trial]: it calls wait to report the result and
	// wait until it is confirmed, as far as answers reports true; the error says why it is not. The error of Trial
	// replaces the result.
	Trial func(args []string, wait func(answers func() bool) error) error
	// Runs does what it does, given its arguments; what it returns is what the program says.
	Runs func(args []string) (result any, err error)
}

// Cluster has nodes that run host tasks. Make it with [New].
type Cluster struct {
	*kubesim.Objects

	mu       sync.Mutex
	nodes    map[string]*node
	logs     map[string]string
	made     map[string]int
	under    map[string]bool
	most     int
	badSince map[string]time.Time
	badFor   time.Duration
	removed  map[string]context.CancelFunc
	watches  map[*watch.RaceFreeFakeWatcher]bool
	watched  int
}

type node struct {
	kube.Node
	lost    bool
	program Program
}

var _ hosttask.Nodes = (*Cluster)(nil)

// New returns a cluster of ready nodes.
func New(names ...string) *Cluster {
	c := &Cluster{
		Objects: kubesim.NewObjects(), nodes: map[string]*node{}, logs: map[string]string{}, made: map[string]int{},
		under: map[string]bool{}, badSince: map[string]time.Time{},
		watches: map[*watch.RaceFreeFakeWatcher]bool{}, removed: map[string]context.CancelFunc{},
	}
	for _, name := range names {
		c.Add(name)
	}
	c.AfterEffect = c.after
	return c
}

// Add adds a ready node, whose UID is its name after "uid-".
func (c *Cluster) Add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = &node{Node: kube.Node{Name: name, UID: "uid-" + name}}
}

// Set says what becomes of pods on a node from now on.
func (c *Cluster) Set(name string, program Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name].program = program
}

// Taint gives a node a taint, or with an empty key takes all off. One that is unreachable
// runs nothing, as far as anybody can see.
func (c *Cluster) Taint(name, key string) {
	c.mu.Lock()
	n := c.nodes[name]
	n.Facts.Taints, n.lost = nil, key == journal.TaintUnreachable
	if key != "" {
		n.Facts.Taints = []journal.Taint{{Key: key, Effect: "NoSchedule"}}
	}
	lost := n.lost
	c.mu.Unlock()
	if lost {
		c.unready(name)
	}
}

// Replace puts another node in the place of one.
func (c *Cluster) Replace(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name].UID += "-new"
}

// Delete removes a node.
func (c *Cluster) Delete(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, name)
}

// Made returns how many pods were made on a node.
func (c *Cluster) Made(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[name]
}

// Most returns how many pods had not ended at a time, at most.
func (c *Cluster) Most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// BadFor returns for how long at most a pod has been left that could not succeed any more.
func (c *Cluster) BadFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := c.badFor
	for _, since := range c.badSince {
		longest = max(longest, time.Since(since))
	}
	return longest
}

// Pods returns the names of the pods that are left, each with its phase.
func (c *Cluster) Pods() []string {
	list, err := kube.List[corev1.Pod](context.Background(), c, podRef(""), "", "")
	if err != nil {
		return []string{err.Error()}
	}
	var pods []string
	for _, pod := range list {
		pods = append(pods, pod.Spec.NodeName+" "+string(pod.Status.Phase))
	}
	return pods
}

func podRef(name string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: Namespace, Name: name}
}

// Node implements [hosttask.Nodes].
func (c *Cluster) Node(ctx context.Context, name string) (kube.Node, error) {
	if err := sim.Reach(ctx, &c.APIServer, "get nodes"); err != nil {
		return kube.Node{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[name]; n != nil {
		return n.Node, nil
	}
	return kube.Node{}, fmt.Errorf("get nodes %s: %w", name, kube.ErrNotFound)
}

// Info is what every Node object says of its machine.
const Info = `{"kernelVersion":"6.1.0","kubeletVersion":"v1.36.0","containerRuntimeVersion":"containerd://1.6.20"}`

// ReadObject implements [kube.Objects]. Node objects are those of the cluster's nodes.
func (c *Cluster) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if ref.Resource != "nodes" {
		return c.Objects.ReadObject(ctx, ref)
	}
	node, err := c.Node(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q},"status":{"nodeInfo":%s}}`, node.Name, node.UID, Info), nil
}

// ForceDeletePod implements [hosttask.Nodes].
func (c *Cluster) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return c.DeleteObject(ctx, kube.Ref{Version: "v1", Resource: "pods", Namespace: namespace, Name: name}, uid)
}

// PodLog implements [hosttask.Nodes]. A node that is unreachable does not give it.
func (c *Cluster) PodLog(ctx context.Context, _, name string, last int64) (string, error) {
	if err := sim.Reach(ctx, &c.APIServer, "get pods/log"); err != nil {
		return "", err
	}
	pod, _ := c.pod(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[pod.Spec.NodeName]; n != nil && n.lost {
		return "", errors.New("the kubelet of its node does not give it")
	}
	text := c.logs[name]
	if lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n"); last > 0 && len(lines) > int(last) {
		text = strings.Join(lines[len(lines)-int(last):], "") + "\n"
	}
	return text, nil
}

// PodsLabelled implements [hosttask.Nodes]. It can only be watched.
func (c *Cluster) PodsLabelled(_, _, _ string) kube.Source { return source{c} }

type source struct{ cluster *Cluster }

// ListWithContext is never called.
func (source) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

// WatchWithContext notices every change of a pod from now on.
func (s source) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.cluster.watched++
	if err := sim.Reach(ctx, &s.cluster.APIServer, "watch pods"); err != nil {
		return nil, err
	}
	opened := watch.NewRaceFreeFake()
	s.cluster.watches[opened] = true
	return opened, nil
}

// Watched returns how often a watch was asked for.
func (c *Cluster) Watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched
}

// EndWatches ends all that are open, as the API server does now and then.
func (c *Cluster) EndWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		w.Stop()
	}
	clear(c.watches)
}

// tell tells the watches of a change of a pod. They are told no more once one of them has
// not listened for long.
func (c *Cluster) tell(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		if w.IsStopped() || len(w.ResultChan()) > 90 {
			delete(c.watches, w)
			continue
		}
		w.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}})
	}
}
