package bench

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// doomed is a pod on a lost node.
type doomed struct {
	node string
	// deletion is its deletionTimestamp, in the API's resolution of a second.
	deletion time.Time
	gone     bool
}

// terminations watches the pods on some nodes, as the API server tells of them.
type terminations struct {
	mu   sync.Mutex
	pods map[string]doomed
}

// watchTerminations watches until the benchmark ends or stop is called.
func (c *cluster) watchTerminations(b *testing.B, nodes []string) (t *terminations, stop func()) {
	b.Helper()
	t = &terminations{pods: make(map[string]doomed)}
	ctx, cancel := context.WithCancel(b.Context())
	var watching sync.WaitGroup
	for _, node := range nodes {
		watcher, err := c.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			cancel()
			b.Fatal(err)
		}
		watching.Go(func() {
			defer watcher.Stop()
			for event := range watcher.ResultChan() {
				if pod, ok := event.Object.(*corev1.Pod); ok {
					t.saw(pod, event.Type)
				}
			}
		})
	}
	stop = func() {
		cancel()
		watching.Wait()
	}
	b.Cleanup(stop)
	return t, stop
}

func (t *terminations) saw(pod *corev1.Pod, change watch.EventType) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := pod.Namespace + "/" + pod.Name
	seen := t.pods[name]
	seen.node = pod.Spec.NodeName
	// A forced delete moves the time: the first one counts.
	if pod.DeletionTimestamp != nil && seen.deletion.IsZero() {
		seen.deletion = pod.DeletionTimestamp.Time
	}
	seen.gone = change == watch.Deleted
	t.pods[name] = seen
}

// all returns the pods seen so far.
func (t *terminations) all() map[string]doomed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.pods)
}

// gone returns how many pods no longer exist.
func (t *terminations) gone() int {
	count := 0
	for _, pod := range t.all() {
		if pod.gone {
			count++
		}
	}
	return count
}
