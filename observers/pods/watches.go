package pods

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
)

// maxWatches is the maximum number of nodes with separate watches. If more nodes are lost, one watch of all pods serves
// all of them: most of the cluster's pods are then on lost nodes anyway, and one stream costs less than hundreds. Each
// open watch takes about 35 KiB and four goroutines in EKCO (measured), and a place in the API server's cache of
// watchers. EKCO stores the same terminating pods in both cases.
const maxWatches = 50

// watches has one feed for each lost node, or one feed for all. Only one goroutine uses it.
type watches struct {
	on      func(node string) kube.Source
	facts   *facts
	to      *observers.Reporter
	feeds   map[string]watch
	running sync.WaitGroup
}

// watch is a running feed.
type watch struct {
	*observers.Feed
	nodeUID string
	sink    *sink
	stop    context.CancelFunc
}

// allNodes is the key of the feed for all nodes.
const allNodes = ""

func newWatches(on func(node string) kube.Source, facts *facts, to *observers.Reporter) *watches {
	return &watches{on: on, facts: facts, to: to, feeds: make(map[string]watch)}
}

// wait waits until no feed runs.
func (w *watches) wait() { w.running.Wait() }

func (w *watches) look() {
	for _, feed := range w.feeds {
		feed.Look()
	}
}

// arrange starts and stops feeds for the wanted nodes.
func (w *watches) arrange(ctx context.Context, want map[string]string) {
	wide := w.useOneWatch(len(want))
	for name, feed := range w.feeds {
		uid, wanted := want[name]
		if keep := wide && name == allNodes || !wide && wanted && uid == feed.nodeUID; !keep {
			w.stop(name)
		}
	}
	w.facts.differ.Change(func(all *compared) {
		if !wide {
			w.facts.onlyWatchedNodes(all)
		}
		w.facts.watch(all, want)
	})
	if wide {
		w.start(ctx, allNodes, "")
		return
	}
	for name, uid := range want {
		w.start(ctx, name, uid)
	}
}

// useOneWatch reports whether to use one watch for all pods. It changes back only at half the limit, so that flapping
// nodes do not cause constant changes.
func (w *watches) useOneWatch(lost int) bool {
	if _, already := w.feeds[allNodes]; already {
		return lost > maxWatches/2
	}
	return lost > maxWatches
}

func (w *watches) start(ctx context.Context, node, uid string) {
	if _, ok := w.feeds[node]; ok {
		return
	}
	name := "pods"
	if node != allNodes {
		name = "pods on " + node
	}
	ctx, stop := context.WithCancel(ctx)
	to := &sink{facts: w.facts, node: node}
	feed := w.to.Feed(name, w.on(node), to)
	w.feeds[node] = watch{Feed: feed, nodeUID: uid, sink: to, stop: stop}
	w.running.Go(func() { feed.Run(ctx) })
}

func (w *watches) stop(node string) {
	feed := w.feeds[node]
	feed.stop()
	feed.sink.close()
	delete(w.feeds, node)
}

// sink receives the Pods of one node, or of all nodes.
type sink struct {
	facts *facts
	// node is "" for all nodes.
	node string
	// closed is true if the sink must ignore everything. The differ guards it.
	closed bool
}

var _ observers.Sink = (*sink)(nil)

// Example implements [observers.Sink].
func (s *sink) Example() runtime.Object { return &corev1.Pod{} }

// Seen implements [observers.Sink].
func (s *sink) Seen(obj runtime.Object) {
	if pod, ok := obj.(*corev1.Pod); ok {
		now := kube.PodOf(pod)
		s.change(func(all *compared) { see(all, now, askedToEnd(now)) })
	}
}

// Gone implements [observers.Sink].
func (s *sink) Gone(obj runtime.Object) {
	if pod, ok := obj.(*corev1.Pod); ok {
		s.change(func(all *compared) { lose(all, pod.Spec.NodeName, string(pod.UID)) })
	}
}

// All implements [observers.Sink].
func (s *sink) All(objs []runtime.Object) {
	byNode := make(map[string][]kube.Pod)
	for _, obj := range objs {
		if pod, ok := obj.(*corev1.Pod); ok && pod.DeletionTimestamp != nil {
			now := kube.PodOf(pod)
			byNode[now.Node] = append(byNode[now.Node], now)
		}
	}
	s.change(func(all *compared) {
		if s.node == allNodes {
			s.facts.replaceAll(all, byNode)
			return
		}
		replace(all, s.node, byNode[s.node])
	})
}

func (s *sink) change(f func(*compared)) {
	s.facts.differ.Change(func(all *compared) {
		if !s.closed {
			f(all)
		}
	})
}

func (s *sink) close() {
	s.facts.differ.Change(func(*compared) { s.closed = true })
}

// askedToEnd returns when a pod's deletion was requested: the deletion timestamp minus the grace period.
func askedToEnd(pod kube.Pod) time.Time {
	if pod.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(-pod.Grace)
}
