package observers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Triggering is what [Trigger] watches, and what that is for.
type Triggering struct {
	Name string
	// From are the objects, Example one of their type.
	From    kube.Source
	Example runtime.Object
	// Changed is called when one of them changes, and at the start. It must not block.
	Changed func()
	// Later, unless zero, is after which time without a change it is called once more: what
	// there is to see follows from the objects, and takes a while.
	Later time.Duration
}

// Trigger returns a source that tells nothing. It has another look, which could only poll:
// what changes by itself shows in objects that can be watched.
func Trigger(on Triggering) Source { return &trigger{on: on} }

type trigger struct {
	on Triggering

	mu     sync.Mutex
	looked bool
	feed   *Feed
	// later is nil until something has changed, and after the end.
	later *time.Timer
	ended bool
}

var _ Sink = (*trigger)(nil)

// Name implements [Source].
func (t *trigger) Name() string { return t.on.Name }

// Run implements [Source].
func (t *trigger) Run(ctx context.Context, to *Reporter) {
	feed := to.Feed(t.Name(), t.on.From, t)
	t.mu.Lock()
	t.feed, t.ended = feed, false
	t.mu.Unlock()
	defer t.end()
	feed.Run(ctx)
}

// end has nobody look later.
func (t *trigger) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.later != nil {
		t.later.Stop()
	}
}

// Due implements [Source].
func (t *trigger) Due(time.Time) Batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Batch{Looked: t.looked, Written: func() {}, Refused: func() {}}
}

// Look implements [Source].
func (t *trigger) Look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.feed != nil {
		t.feed.Look()
	}
}

// Example implements [Sink].
func (t *trigger) Example() runtime.Object { return t.on.Example }

// Seen implements [Sink].
func (t *trigger) Seen(runtime.Object) { t.changed() }

// Gone implements [Sink].
func (t *trigger) Gone(runtime.Object) { t.changed() }

// All implements [Sink].
func (t *trigger) All([]runtime.Object) {
	t.mu.Lock()
	t.looked = true
	t.mu.Unlock()
	t.changed()
}

func (t *trigger) changed() {
	t.on.Changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.on.Later == 0 || t.ended:
	case t.later == nil:
		t.later = time.AfterFunc(t.on.Later, t.on.Changed)
	default:
		t.later.Reset(t.on.Later)
	}
}
