package hosttask

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// rewatchPause is the pause before the next watch, because without permission each watch ends immediately.
// Callers also poll the pods.
const rewatchPause = 10 * time.Second

// notices reports changes of the pods of host tasks. It keeps a watch open while a caller waits.
type notices struct {
	source kube.Source

	mu      sync.Mutex
	waiting map[string]chan struct{}
	// stop ends the watch. It is nil while there is no watch.
	stop context.CancelFunc
}

// channelFor returns a channel that is closed when the pod with the name changes.
func (n *notices) channelFor(name string) <-chan struct{} {
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
		n.waiting[name] = nil // keep the key until the caller calls leave
	}
}

// watch notices changes until ctx ends.
func (n *notices) watch(ctx context.Context) {
	for ctx.Err() == nil {
		n.watchOnce(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(rewatchPause):
		}
	}
}

// watchOnce reports changes until the watch ends. It ignores errors, because callers also poll the pods.
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
