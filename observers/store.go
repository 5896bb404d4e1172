package observers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Sink receives what a [Feed] reads. The feed calls it from one goroutine at a time.
type Sink interface {
	// Example is an object of the sink's type.
	Example() runtime.Object
	// Seen: the object exists and is as given.
	Seen(obj runtime.Object)
	// Gone: the object no longer exists.
	Gone(obj runtime.Object)
	// All: exactly these objects exist.
	All(objs []runtime.Object)
}

// store adapts a sink to a Reflector. It keeps no objects. The next list shows a missed delete, so there are no
// tombstones (cache.DeletedFinalStateUnknown).
type store struct{ feed *Feed }

var _ cache.TransformingStore = (*store)(nil)

func (s *store) Add(obj any) error    { return s.pass(obj, s.feed.sink.Seen) }
func (s *store) Update(obj any) error { return s.pass(obj, s.feed.sink.Seen) }
func (s *store) Delete(obj any) error { return s.pass(obj, s.feed.sink.Gone) }
func (s *store) Resync() error        { return nil }

func (s *store) pass(obj any, to func(runtime.Object)) error {
	if o, ok := obj.(runtime.Object); ok {
		to(o)
	}
	return nil
}

func (s *store) Replace(objs []any, _ string) error {
	all := make([]runtime.Object, 0, len(objs))
	for _, obj := range objs {
		if o, ok := obj.(runtime.Object); ok {
			all = append(all, o)
		}
	}
	s.feed.sink.All(all)
	s.feed.caughtUp()
	return nil
}

// Transformer reduces each object of a streamed list as it arrives.
func (s *store) Transformer() cache.TransformFunc {
	slim := kube.Slim
	if own, ok := s.feed.source.(kube.Slimmer); ok {
		slim = own.Slim
	}
	return func(obj any) (any, error) {
		if o, ok := obj.(runtime.Object); ok {
			slim(o)
		}
		return obj, nil
	}
}
