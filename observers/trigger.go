package observers

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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
	// Later, unless zero, is after which time it is called once more: what there is to see
	// follows from the objects, and takes a while. While they keep changing it is also how
	// far apart the calls are.
	Later time.Duration
	// Times is how often it is called once more, each so much later; default is once.
	Times int
}

// Trigger returns a source that tells nothing. It has another look, which could only poll:
// what changes by itself shows in objects that can be watched.
func Trigger(on Triggering) Source { return &trigger{on: on} }

type trigger struct {
	on Triggering

	mu     sync.Mutex
	looked bool
	feed   *Feed
	// versions are those of the objects that were listed last, by UID.
	versions map[types.UID]string
	// later is the next call, nil for none, and left how many there are to be; anew is set when
	// something has changed since the last one. calls counts them all.
	later *time.Timer
	left  int
	calls int
	anew  bool
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
	t.ended, t.anew = true, false
	if t.later != nil {
		t.later.Stop()
		t.later = nil
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

// All implements [Sink]. Where the objects cannot be watched it is called again and again,
// mostly with what is known.
func (t *trigger) All(objects []runtime.Object) {
	versions := make(map[types.UID]string, len(objects))
	for _, object := range objects {
		if about, err := meta.Accessor(object); err == nil {
			versions[about.GetUID()] = about.GetResourceVersion()
		}
	}
	t.mu.Lock()
	same := t.looked && maps.Equal(versions, t.versions)
	t.looked, t.versions = true, versions
	t.mu.Unlock()
	if !same {
		t.changed()
	}
}

func (t *trigger) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
	case t.later != nil && t.left == t.times(): // it was called for a change just now
		t.anew = true
	default:
		t.call(t.times())
	}
}

// times is how often it is called later after a change.
func (t *trigger) times() int {
	if t.on.Later <= 0 {
		return 0
	}
	return max(1, t.on.Times)
}

// call has another look, and so many later. The caller holds the lock.
func (t *trigger) call(more int) {
	t.on.Changed()
	if t.later != nil {
		t.later.Stop()
	}
	t.calls++
	t.left, t.later = more, nil
	if calls := t.calls; more > 0 {
		t.later = time.AfterFunc(t.on.Later, func() { t.again(calls) })
	}
}

// again is the call of later than that many calls, unless there was another. What changed since
// the one before may show later still.
func (t *trigger) again(calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended, calls != t.calls:
	case t.anew:
		t.anew = false
		t.call(t.times())
	default:
		t.call(t.left - 1)
	}
}
