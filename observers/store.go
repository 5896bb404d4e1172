package observers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Sink receives the objects that a [Feed] reads. Only one goroutine calls it at a time.
type Sink interface {
	// Example returns an object of the sink's type.
	Example() runtime.Object
	// Seen is called if the object exists, with its present state.
	Seen(obj runtime.Object)
	// Gone is called if the object no longer exists.
	Gone(obj runtime.Object)
	// All is called after a complete list: exactly these objects exist.
	All(objs []runtime.Object)
}

// store adapts a sink to a Reflector. It keeps no objects, so it needs no tombstones (cache.DeletedFinalStateUnknown):
// the next list shows a missed delete.
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
	s.feed.onCompleteList()
	return nil
}

// Transformer returns a function that reduces each object of a streamed list as it arrives.
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
