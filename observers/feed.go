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

// listPage is the number of objects in one page of a list. It limits the memory for a list, because EKCO reduces each
// page before it reads the next one.
const listPage = 500

// minGoodRound is how long a round must last for its failure to start a new backoff.
const minGoodRound = time.Minute

// Feed keeps a sink up to date with one source of objects. It watches if that is permitted, and otherwise polls. One
// goroutine runs it.
//
// In each round, client-go's Reflector lists, and then watches until the watch cannot be resumed. The feed decides when
// to start the next round: the Reflector would silently retry a forbidden watch, or a watch of an API server that does
// not answer.
type Feed struct {
	name    string
	source  kube.Source
	sink    Sink
	gate    *gate
	monitor *outageMonitor
	// essential is true if EKCO cannot work without this feed.
	essential bool
	retryNow  chan struct{}
	backoff   backoff

	mu       sync.Mutex
	endRound context.CancelFunc
	// failure is the last failure of this round. It is nil after a success.
	failure error
	synced  bool
	// streamTimer is the timer that stops a streamed list after a timeout; nil if no list is streamed.
	streamTimer *time.Timer
	// pagesUntil is the time until which lists are read in pages.
	pagesUntil time.Time
}

func newFeed(name string, source kube.Source, to Sink, g *gate, m *outageMonitor) *Feed {
	return &Feed{name: name, source: source, sink: to, gate: g, monitor: m, retryNow: make(chan struct{}, 1)}
}

// Run keeps the sink up to date until ctx ends. It may be called only once.
func (f *Feed) Run(ctx context.Context) {
	ctx = kube.Unreported(ctx) // the feed itself reports failures to the monitor
	f.monitor.join(f)
	defer f.monitor.leave(f)
	reflector := f.newReflector()
	for ctx.Err() == nil {
		began := time.Now()
		err := f.round(ctx, reflector)
		if time.Since(began) > minGoodRound {
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
			// The Reflector uses it only if the server ends a stream with "too many requests".
			Backoff: &wait.Backoff{Duration: time.Second, Cap: 5 * time.Second, Factor: 2, Jitter: 1, Steps: 10},
		})
	reflector.WatchListPageSize = listPage
	return reflector
}

// round lists and watches until that fails or until restart ends it.
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
	f.stopStreamTimeout()
	err = errors.Join(f.failure, err)
	f.mu.Unlock()
	if err == nil && ctx.Err() == nil {
		// Report it, because the broken stream can be the only sign that the server hangs.
		f.monitor.suspectOutage(fmt.Errorf("the connection of the watch of %s broke", f.name))
	}
	return err
}

// delay returns how long to wait after a round that ended with err.
func (f *Feed) delay(err error) time.Duration {
	if f.gate.mustPoll() && !f.lostPermission() && (err == nil || isRefused(err)) {
		f.backoff.reset()
		return f.gate.interval()
	}
	return f.backoff.next()
}

// lostPermission reports whether EKCO lost a permission that it needs. The refusal can be temporary: an API server that
// has just started may refuse requests that it permits a moment later.
func (f *Feed) lostPermission() bool { return f.essential && f.hasSynced() && f.gate.cannotList() }

// isRefused reports whether the error means that EKCO may not read the source, or that the source does not exist.
func isRefused(err error) bool {
	return errors.Is(kube.Sentinel(err), kube.ErrForbidden) || isMissing(err)
}

// isMissing reports whether the error means that the source does not exist.
func isMissing(err error) bool {
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

// Look makes a polling feed read at once. A watching feed sees changes anyway.
func (f *Feed) Look() {
	if f.gate.mustPoll() {
		f.endPause()
	}
}

func (f *Feed) isEssential() bool { return f.essential }

// endPause ends the pause before the next round.
func (f *Feed) endPause() {
	select {
	case f.retryNow <- struct{}{}:
	default:
	}
}

// restart ends the present round, if any, and starts a new round at once.
func (f *Feed) restart() {
	f.mu.Lock()
	end := f.endRound
	f.mu.Unlock()
	if end != nil {
		end()
	}
	f.endPause()
}

// list reads one page for the Reflector. It always reads from etcd (version ""), because EKCO's facts must not be older
// than the facts in the journal. The Reflector would ask for the version that it saw last, so a poll would never see a
// change.
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
	if isRefused(err) {
		f.gate.refuseList(err)
		// If EKCO loses access to an essential source, that counts as an outage.
		if !f.essential || !f.hasSynced() {
			f.note(err)
			f.monitor.recordRead(f, time.Now())
			return
		}
	}
	f.failed(err)
}

// watch opens a watch for the Reflector, unless EKCO knows that the watch is forbidden.
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
			f.startStreamTimeout()
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
		return nil, finalWatchError{err.Error()}
	}
	return nil, err
}

// finalWatchError replaces an error that the Reflector would retry itself.
type finalWatchError struct{ text string }

func (e finalWatchError) Error() string { return e.text }

func (f *Feed) failed(err error) {
	f.note(err)
	f.monitor.recordNoAnswer(f, err)
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

// onCompleteList is called after the sink has received a complete list.
func (f *Feed) onCompleteList() {
	f.mu.Lock()
	f.synced, f.failure = true, nil
	f.stopStreamTimeout()
	f.mu.Unlock()
	f.monitor.recordRead(f, time.Now())
}
