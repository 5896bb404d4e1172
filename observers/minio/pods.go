package minio

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
)

// pods is a source that tells nothing. It has another one look when a pod changes.
type pods struct {
	from    kube.Source
	changed func()

	mu     sync.Mutex
	looked bool
	feed   *observers.Feed
}

var (
	_ observers.Source = (*pods)(nil)
	_ observers.Sink   = (*pods)(nil)
)

// Name implements [observers.Source].
func (*pods) Name() string { return "MinIO pods" }

// Run implements [observers.Source].
func (p *pods) Run(ctx context.Context, to *observers.Reporter) {
	feed := to.Feed(p.Name(), p.from, p)
	p.mu.Lock()
	p.feed = feed
	p.mu.Unlock()
	feed.Run(ctx)
}

// Due implements [observers.Source].
func (p *pods) Due(time.Time) observers.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return observers.Batch{Looked: p.looked, Written: func() {}, Refused: func() {}}
}

// Look implements [observers.Source].
func (p *pods) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed != nil {
		p.feed.Look()
	}
}

// Example implements [observers.Sink].
func (*pods) Example() runtime.Object { return &corev1.Pod{} }

// Seen implements [observers.Sink].
func (p *pods) Seen(runtime.Object) { p.changed() }

// Gone implements [observers.Sink].
func (p *pods) Gone(runtime.Object) { p.changed() }

// All implements [observers.Sink].
func (p *pods) All([]runtime.Object) {
	p.mu.Lock()
	p.looked = true
	p.mu.Unlock()
	p.changed()
}
