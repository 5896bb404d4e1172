package hosttask

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// rewatch is the pause before the next watch: without permission, each one ends at once. Pods
// are polled as well.
const rewatch = 10 * time.Second

// notices reports changes of the pods of host tasks. It watches while a caller waits.
type notices struct {
	source kube.Source

	mu      sync.Mutex
	waiting map[string]chan struct{}
	// stop ends the watch, nil while there is none.
	stop context.CancelFunc
}

// of returns a channel that is closed when the pod of that name changes.
func (n *notices) of(name string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[name] == nil {
		n.waiting[name] = make(chan struct{})
	}
	if n.stop == nil {
		var ctx context.Context
		ctx, n.stop = context.WithCancel(context.Background()) // until the last caller leaves
		go n.watch(ctx)
	}
	return n.waiting[name]
}

// leave ends the wait for a pod.
func (n *notices) leave(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting, name)
	if len(n.waiting) == 0 && n.stop != nil {
		n.stop()
		n.stop = nil
	}
}

// changed wakes the caller that waits for the pod.
func (n *notices) changed(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if waits := n.waiting[name]; waits != nil {
		close(waits)
		n.waiting[name] = nil // keep the key: the caller has not left
	}
}

// watch notices changes until ctx ends.
func (n *notices) watch(ctx context.Context) {
	for ctx.Err() == nil {
		n.watchOnce(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

// watchOnce reports changes until the watch ends. It ignores errors, since pods are polled as
// well.
func (n *notices) watchOnce(ctx context.Context) {
	watch, err := n.source.WatchWithContext(kube.Unreported(ctx), metav1.ListOptions{})
	if err != nil {
		return
	}
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, more := <-watch.ResultChan():
			if !more {
				return
			}
			if pod, is := event.Object.(metav1.Object); is {
				n.changed(pod.GetName())
			}
		}
	}
}
