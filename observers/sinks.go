package observers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
)

// nodeSink takes Nodes.
type nodeSink struct{ out *outbox }

func (s *nodeSink) example() runtime.Object { return &corev1.Node{} }

func (s *nodeSink) seen(obj any) {
	if node, ok := obj.(*corev1.Node); ok {
		now := kube.NodeOf(node)
		s.out.change(func() { s.out.nodes.see(now) })
	}
}

func (s *nodeSink) gone(obj any) {
	if node, ok := obj.(*corev1.Node); ok {
		s.out.change(func() { s.out.nodes.lose(node.Name, string(node.UID)) })
	}
}

func (s *nodeSink) all(objs []any) {
	nodes := make([]kube.Node, 0, len(objs))
	for _, obj := range objs {
		if node, ok := obj.(*corev1.Node); ok {
			nodes = append(nodes, kube.NodeOf(node))
		}
	}
	s.out.change(func() { s.out.nodes.replace(nodes) })
}

// podSink takes the Pods of one node, or of all nodes.
type podSink struct {
	out *outbox
	// node is empty for all nodes.
	node string
	// closed sinks take nothing more; the outbox's mutex guards it.
	closed bool
}

func (s *podSink) example() runtime.Object { return &corev1.Pod{} }

func (s *podSink) seen(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	now := kube.PodOf(pod)
	asked := askedToEnd(now)
	s.change(func() { s.out.pods.see(now.Node, now, asked) })
}

func (s *podSink) gone(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok {
		s.change(func() { s.out.pods.lose(pod.Spec.NodeName, string(pod.UID)) })
	}
}

func (s *podSink) all(objs []any) {
	byNode := make(map[string][]kube.Pod)
	for _, obj := range objs {
		if pod, ok := obj.(*corev1.Pod); ok && pod.DeletionTimestamp != nil {
			now := kube.PodOf(pod)
			byNode[now.Node] = append(byNode[now.Node], now)
		}
	}
	s.change(func() {
		if s.node == "" {
			s.out.pods.replaceAll(byNode)
			return
		}
		s.out.pods.replace(s.node, byNode[s.node])
	})
}

func (s *podSink) change(f func()) {
	s.out.change(func() {
		if !s.closed {
			f()
		}
	})
}

func (s *podSink) close() {
	s.out.change(func() { s.closed = true })
}

// askedToEnd returns when a pod was asked to end: its deletion timestamp is
// that plus the grace period.
func askedToEnd(pod kube.Pod) time.Time {
	if pod.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(-pod.Grace)
}
