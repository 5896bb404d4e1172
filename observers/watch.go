package observers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Watched configures [Watch]: one object or many objects of one resource.
type Watched[V any] struct {
	Noun[V]
	Name string
	// From lists and watches the objects. Object is an object of their type.
	From   kube.Source
	Object runtime.Object
	// Read reduces an object to its key and to what decisions need, without counters and times that keep changing. ok
	// is false if the object is not relevant (any more); even then Read must return the key and UID.
	Read func(runtime.Object) (key string, v V, ok bool)
	// Essential is true if EKCO cannot work without the source. See [Essential].
	Essential bool
	// Also receives the same objects before they are reduced, so that another user needs no watch of its own. It may be
	// nil.
	Also Sink
}

// Watch returns a source that watches objects if that is permitted, and otherwise polls them.
func Watch[V any](what Watched[V]) Source {
	return &watched[V]{what: what, differ: what.differ()}
}

type watched[V any] struct {
	what   Watched[V]
	differ *Differ[V]

	mu   sync.Mutex
	feed *Feed
}

var (
	_ Essential = (*watched[any])(nil)
	_ Sink      = (*watched[any])(nil)
)

func (w *watched[V]) Name() string           { return w.what.Name }
func (w *watched[V]) Essential() bool        { return w.what.Essential }
func (w *watched[V]) Due(at time.Time) Batch { return w.differ.Due(at) }

// Run implements [Source].
func (w *watched[V]) Run(ctx context.Context, to *Reporter) {
	w.differ.Report(to.Changed)
	feed := to.Feed(w.what.Name, w.what.From, w)
	w.mu.Lock()
	w.feed = feed
	w.mu.Unlock()
	feed.Run(ctx)
}

// Look implements [Source].
func (w *watched[V]) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.feed != nil {
		w.feed.Look()
	}
}

// Example implements [Sink].
func (w *watched[V]) Example() runtime.Object { return w.what.Object }

// Seen implements [Sink].
func (w *watched[V]) Seen(obj runtime.Object) {
	if w.what.Also != nil {
		w.what.Also.Seen(obj)
	}
	key, v, ok := w.what.Read(obj)
	w.differ.Change(func(facts *Facts[V]) {
		if ok {
			w.what.see(facts, key, v)
		} else {
			w.what.lose(facts, key, v)
		}
	})
}

// Gone implements [Sink].
func (w *watched[V]) Gone(obj runtime.Object) {
	if w.what.Also != nil {
		w.what.Also.Gone(obj)
	}
	key, v, _ := w.what.Read(obj)
	w.differ.Change(func(facts *Facts[V]) { w.what.lose(facts, key, v) })
}

// All implements [Sink].
func (w *watched[V]) All(objs []runtime.Object) {
	if w.what.Also != nil {
		w.what.Also.All(objs)
	}
	all := make(map[string]V, len(objs))
	for _, obj := range objs {
		if key, v, ok := w.what.Read(obj); ok {
			all[key] = v
		}
	}
	w.differ.Change(func(facts *Facts[V]) { w.what.replace(facts, all) })
}
