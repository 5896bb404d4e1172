package hosttask

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// rewatch is how long no watch is opened after one has ended, as at once where it is not
// granted. Pods are looked at without it too.
const rewatch = 10 * time.Second

// notices tell when a pod of a host task has changed. It watches as long as somebody wants
// to know.
type notices struct {
	source kube.Source

	mu      sync.Mutex
	waiting map[string]chan struct{}
	// stop ends the watch, nil while there is none.
	stop context.CancelFunc
}

// of returns what is closed once the pod of that name changes.
func (n *notices) of(name string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[name] == nil {
		n.waiting[name] = make(chan struct{})
	}
	if n.stop == nil {
		var ctx context.Context
		ctx, n.stop = context.WithCancel(context.Background()) // until nobody wants to know
		go n.watch(ctx)
	}
	return n.waiting[name]
}

// leave says that nobody wants to know of the pod any more.
func (n *notices) leave(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting, name)
	if len(n.waiting) == 0 && n.stop != nil {
		n.stop()
		n.stop = nil
	}
}

// changed wakes who waits for the pod.
func (n *notices) changed(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if waits := n.waiting[name]; waits != nil {
		close(waits)
		n.waiting[name] = nil // and not out of it: somebody still wants to know
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

// watchOnce notices changes until the watch ends. What goes wrong with it is nothing that
// anybody must know.
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
