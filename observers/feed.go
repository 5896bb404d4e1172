package observers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/replicatedhq/ekco/internal/kube"
)

// listPage is how many objects one page of a list has. It limits the memory of a list, because each page is reduced
// before the next one is read.
const listPage = 500

// After a round of this length, the next failure starts a new backoff.
const goodRound = time.Minute

// Feed keeps a sink up to date with one source, by watching if permitted, and otherwise by polling. One goroutine
// runs it.
//
// client-go's Reflector does a round: list, then watch until the watch cannot be resumed. The feed decides when to
// start the next round, because the Reflector would silently retry a forbidden watch, or one of an API server that
// does not answer.
type Feed struct {
	name    string
	source  kube.Source
	sink    Sink
	gate    *gate
	monitor *monitor
	// essential is set if EKCO cannot work without this feed.
	essential bool
	retryNow  chan struct{}
	backoff   backoff

	mu       sync.Mutex
	endRound context.CancelFunc
	// failure is the last failure of this round, nil after a success.
	failure error
	synced  bool
	// late stops a streamed list that takes too long; nil if there is none.
	late *time.Timer
	// pagesUntil is until when lists are read in pages.
	pagesUntil time.Time
}

func newFeed(name string, source kube.Source, to Sink, g *gate, m *monitor) *Feed {
	return &Feed{name: name, source: source, sink: to, gate: g, monitor: m, retryNow: make(chan struct{}, 1)}
}

// Run keeps the sink up to date until ctx ends. It is called once.
func (f *Feed) Run(ctx context.Context) {
	ctx = kube.Unreported(ctx) // the feed itself reports failures to the monitor
	f.monitor.join(f)
	defer f.monitor.leave(f)
	reflector := f.newReflector()
	for ctx.Err() == nil {
		began := time.Now()
		err := f.round(ctx, reflector)
		if time.Since(began) > goodRound {
			f.backoff.reset()
		}
		f.pause(ctx, f.delay(err))
	}
}

func (f *Feed) newReflector() *cache.Reflector {
	reflector := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch},
		f.sink.Example(), &store{feed: f},
		cache.ReflectorOptions{
			Name: "ekco/" + f.name,
			// Used only for a stream that the server ends with "too many requests".
			Backoff: &wait.Backoff{Duration: time.Second, Cap: 5 * time.Second, Factor: 2, Jitter: 1, Steps: 10},
		})
	reflector.WatchListPageSize = listPage
	return reflector
}

// round lists and watches until that fails or restart ends it.
func (f *Feed) round(ctx context.Context, reflector *cache.Reflector) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	f.mu.Lock()
	f.endRound, f.failure = end, nil
	f.mu.Unlock()
	select {
	case <-f.retryNow:
	default:
	}
	err := reflector.ListAndWatchWithContext(ctx)
	f.mu.Lock()
	f.endRound = nil
	f.endTimeout()
	err = errors.Join(f.failure, err)
	f.mu.Unlock()
	if err == nil && ctx.Err() == nil {
		// A broken stream can be the only sign of a server that hangs.
		f.monitor.suspect(fmt.Errorf("the watch of %s broke off", f.name))
	}
	return err
}

// delay is how long to wait after a round that ended with err.
func (f *Feed) delay(err error) time.Duration {
	if f.gate.mustPoll() && !f.missed() && (err == nil || refused(err)) {
		f.backoff.reset()
		return f.gate.interval()
	}
	return f.backoff.next()
}

// missed reports whether EKCO lost a permission that it needs. Such a refusal can be temporary: an API server that
// has just started refuses what it permits a moment later.
func (f *Feed) missed() bool { return f.essential && f.hasSynced() && f.gate.blind() }

// refused reports whether EKCO may not read the source, or it does not exist.
func refused(err error) bool {
	return errors.Is(kube.Sentinel(err), kube.ErrForbidden) || missing(err)
}

// missing reports whether the source does not exist.
func missing(err error) bool {
	return errors.Is(kube.Sentinel(err), kube.ErrNotFound) || errors.Is(err, ErrAbsent)
}

func (f *Feed) pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.retryNow:
		f.backoff.reset()
	case <-ctx.Done():
	}
}

// Look makes a polling feed read immediately. A watching feed sees changes anyway.
func (f *Feed) Look() {
	if f.gate.mustPoll() {
		f.hurry()
	}
}

func (f *Feed) isEssential() bool { return f.essential }

// hurry ends the pause before the next round.
func (f *Feed) hurry() {
	select {
	case f.retryNow <- struct{}{}:
	default:
	}
}

// restart ends the present round, if any, and begins a new one immediately.
func (f *Feed) restart() {
	f.mu.Lock()
	end := f.endRound
	f.mu.Unlock()
	if end != nil {
		end()
	}
	f.hurry()
}

// list reads one page for the Reflector, always from etcd (version ""): EKCO's facts must not be older than the
// journal's. The Reflector would request the version it saw last, so polling would never see a change.
func (f *Feed) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	list, err := f.source.ListWithContext(ctx, options)
	if err != nil {
		f.listFailed(ctx, err)
		return nil, err
	}
	f.gate.permitList()
	return list, nil
}

func (f *Feed) listFailed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if refused(err) {
		f.gate.refuseList(err)
		// The loss of access to an essential source counts as an outage.
		if !f.essential || !f.hasSynced() {
			f.note(err)
			f.monitor.synced(f, time.Now())
			return
		}
	}
	f.failed(err)
}

// watch opens a watch for the Reflector, unless EKCO knows that it is forbidden.
func (f *Feed) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := f.gate.watchRefused(); err != nil {
		f.note(err)
		return nil, err
	}
	streamed := options.SendInitialEvents != nil
	if streamed && !f.mayStream() {
		return nil, errPages
	}
	opened, err := f.source.WatchWithContext(ctx, options)
	switch {
	case err == nil:
		f.gate.permitWatch()
		f.note(nil)
		if streamed {
			f.bePatient()
		}
		return opened, nil
	case ctx.Err() != nil:
	case errors.Is(kube.Sentinel(err), kube.ErrForbidden):
		f.gate.refuseWatch(err)
		f.note(err)
	case errors.Is(kube.Sentinel(err), kube.ErrUnavailable):
		f.failed(err)
	}
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return nil, unresumable{err.Error()}
	}
	return nil, err
}

// unresumable hides from the Reflector an error that it would retry itself.
type unresumable struct{ text string }

func (e unresumable) Error() string { return e.text }

func (f *Feed) failed(err error) {
	f.note(err)
	f.monitor.failing(f, err)
}

func (f *Feed) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = err
}

func (f *Feed) hasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

// caughtUp is called after the sink got a complete list.
func (f *Feed) caughtUp() {
	f.mu.Lock()
	f.synced, f.failure = true, nil
	f.endTimeout()
	f.mu.Unlock()
	f.monitor.synced(f, time.Now())
}
