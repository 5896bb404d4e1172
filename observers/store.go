package observers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/replicatedhq/ekco/internal/kube"
)

// sink takes what a feed sees.
type sink interface {
	// example is an object of the type the sink takes.
	example() runtime.Object
	// seen: the object exists and is as given.
	seen(obj any)
	// gone: the object no longer exists.
	gone(obj any)
	// all: exactly these objects exist.
	all(objs []any)
}

// store makes a sink what a Reflector writes to. It keeps no objects, only the
// facts the sink draws from them. A delete that was missed shows in the next
// list, so there are no tombstones (cache.DeletedFinalStateUnknown).
type store struct{ feed *feed }

var _ cache.TransformingStore = (*store)(nil)

func (s *store) Add(obj any) error    { s.feed.sink.seen(obj); return nil }
func (s *store) Update(obj any) error { s.feed.sink.seen(obj); return nil }
func (s *store) Delete(obj any) error { s.feed.sink.gone(obj); return nil }
func (s *store) Resync() error        { return nil }

func (s *store) Replace(objs []any, _ string) error {
	s.feed.sink.all(objs)
	s.feed.caughtUp()
	return nil
}

// Transformer reduces each object of a streamed list as it arrives.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(runtime.Object); ok {
			kube.Slim(o)
		}
		return obj, nil
	}
}
