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

// Triggering configures a [Trigger].
type Triggering struct {
	Name string
	// From is the source of the objects. Example is an object of their type.
	From    kube.Source
	Example runtime.Object
	// Changed is called when an object changes, and at the start. It must not block.
	Changed func()
	// Later is the delay of another call of Changed, because the effects of a change may take a while; zero means no
	// other call. While objects keep changing, it is also the time between calls.
	Later time.Duration
	// Times is the number of later calls (default 1). The time between them is Later.
	Times int
}

// Trigger returns a source without facts. It watches objects in order to trigger a source that can only poll.
func Trigger(on Triggering) Source { return &trigger{on: on} }

type trigger struct {
	on Triggering

	mu     sync.Mutex
	looked bool
	feed   *Feed
	// versions has the versions of the objects in the last list, by UID.
	versions map[types.UID]string
	// later is the timer of the next call, or nil. left is the number of calls after that. changedSince is true if
	// something has changed since the last call. calls counts all calls.
	later        *time.Timer
	left         int
	calls        int
	changedSince bool
	ended        bool
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

// end cancels all later calls.
func (t *trigger) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.changedSince = true, false
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

// All implements [Sink]. If EKCO may not watch the objects, it is called after each poll, mostly without changes.
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
	case t.later != nil && t.left == t.times(): // it was just called for a change
		t.changedSince = true
	default:
		t.call(t.times())
	}
}

// times returns the number of later calls after a change.
func (t *trigger) times() int {
	if t.on.Later <= 0 {
		return 0
	}
	return max(1, t.on.Times)
}

// call calls Changed now, and again for the given number of later calls. The caller must hold the lock.
func (t *trigger) call(more int) {
	t.on.Changed()
	if t.later != nil {
		t.later.Stop()
	}
	t.calls++
	t.left, t.later = more, nil
	if calls := t.calls; more > 0 {
		t.later = time.AfterFunc(t.on.Later, func() { t.callLater(calls) })
	}
}

// callLater makes the call that call number calls scheduled, unless there was another call since. If an object has
// changed since, it schedules the full number of later calls again.
func (t *trigger) callLater(calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended, calls != t.calls:
	case t.changedSince:
		t.changedSince = false
		t.call(t.times())
	default:
		t.call(t.left - 1)
	}
}
