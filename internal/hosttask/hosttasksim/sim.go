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

// Namespace is the namespace of the tasks' pods.
const Namespace = "kurl"

// Program defines how a task's program behaves on a node. The zero value starts after a second, runs for three seconds
// and succeeds.
type Program struct {
	// Start is the time until the container has started. Run is the duration of the program. The defaults are 1 s and 3 s.
	Start, Run time.Duration
	// Waits is the reason why the container never starts. Message is the kubelet's message about it.
	Waits, Message string
	// Hangs makes the program run until the pod's deadline.
	Hangs bool
	// Dies makes the program exit with an error code and without output.
	Dies bool
	// Lines are the program's log. Failed is the reported failure, or empty for success.
	Lines  []string
	Failed string
	// Silent makes the program succeed without reporting its outcome.
	Silent bool
	// Then returns an error if a task's second program, with this image, cannot run.
	Then func(image string) error
	// Trial runs after Runs if the task has [hosttask.Task.Trial]. It must call wait, which reports the result and waits
	// for the confirmation while answers returns true. wait returns an error if the change is not confirmed. An error of
	// Trial replaces the result.
	Trial func(args []string, wait func(answers func() bool) error) error
	// Runs is the program itself: it receives the arguments and returns the result to report.
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

// Add adds a ready node with the UID "uid-NAME".
func (c *Cluster) Add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = &node{Node: kube.Node{Name: name, UID: "uid-" + name}}
}

// Set defines how programs behave on a node from now on.
func (c *Cluster) Set(name string, program Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name].program = program
}

// Taint adds a taint to a node; an empty key removes all taints. An unreachable node does not report its pods.
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

// Replace replaces a node by another one with the same name and a new UID.
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

// Made returns how many pods were created on a node.
func (c *Cluster) Made(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[name]
}

// MaxAtOnce returns the maximum number of unfinished pods at the same time.
func (c *Cluster) MaxAtOnce() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// BadFor returns for how long, at most, a pod stayed in the cluster after it could no longer succeed.
func (c *Cluster) BadFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := c.badFor
	for _, since := range c.badSince {
		longest = max(longest, time.Since(since))
	}
	return longest
}

// Pods returns the node and phase of each existing pod.
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

// Info is the nodeInfo in the status of every Node.
const Info = `{"kernelVersion":"6.1.0","kubeletVersion":"v1.36.0","containerRuntimeVersion":"containerd://1.6.20"}`

// ReadObject implements [kube.Objects]. It also serves the Node objects.
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

// PodLog implements [hosttask.Nodes]. It fails for an unreachable node.
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

// PodsLabelled implements [hosttask.Nodes]. The source supports watches only.
func (c *Cluster) PodsLabelled(_, _, _ string) kube.Source { return source{c} }

type source struct{ cluster *Cluster }

// ListWithContext is never called.
func (source) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

// WatchWithContext reports every later change of a pod.
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

// Watched returns the number of requests for a watch.
func (c *Cluster) Watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched
}

// EndWatches ends all open watches, as the API server does from time to time.
func (c *Cluster) EndWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		w.Stop()
	}
	clear(c.watches)
}

// notifyWatches reports a change of a pod to all watches. A watch whose client has stopped reading is dropped.
func (c *Cluster) notifyWatches(name string) {
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
