package observers

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// ErrAbsent means that there is nothing to read, for example because an add-on is not installed. Ask returns it
// wrapped. The Kubernetes errors "not found" and "forbidden" have the same meaning.
var ErrAbsent = errors.New("does not exist")

// defaultPollTimeout is the default of [Polled.Timeout].
const defaultPollTimeout = 10 * time.Second

// Polled configures [Poll]. It is for data without a watch, such as the output of a command, a TLS handshake, a health
// page, or objects for which EKCO has only "get" permission.
type Polled[V any] struct {
	Noun[V]
	Name string
	// Ask returns all objects by key, reduced to what decisions need. An object that is missing in the answer no longer
	// exists. Ask must return soon after its context ends. Only one goroutine calls it at a time.
	Ask func(context.Context) (map[string]V, error)
	// Interval is the time between two calls of Ask, plus or minus a tenth. The default is the observers' PollInterval.
	Interval time.Duration
	// Timeout limits one call of Ask (default 10s).
	Timeout time.Duration
	// Apart is the shortest time between two calls of Ask that Look triggers.
	Apart time.Duration
	// OfAPI is true if Ask calls the Kubernetes API. A call without an answer is then a sign of an outage, and an outage
	// ends only after Ask was called again.
	OfAPI bool
}

// Poll returns a source that calls Ask repeatedly. After a failure it retries soon, and then with growing pauses up to
// the interval. A failure changes no facts. The source is never [Essential].
func Poll[V any](what Polled[V]) Source {
	if what.Timeout == 0 {
		what.Timeout = defaultPollTimeout
	}
	return &polled[V]{what: what, differ: what.differ(), lookNow: make(chan struct{}, 1)}
}

type polled[V any] struct {
	what    Polled[V]
	differ  *Differ[V]
	lookNow chan struct{}

	mu sync.Mutex
	// endAsk ends the running call of Ask; nil if there is none.
	endAsk context.CancelFunc
}

var _ reader = (*polled[any])(nil)

func (p *polled[V]) Name() string           { return p.what.Name }
func (p *polled[V]) Due(at time.Time) Batch { return p.differ.Due(at) }

// Look implements [Source]. A running call may miss the change, so another call follows it.
func (p *polled[V]) Look() {
	select {
	case p.lookNow <- struct{}{}:
	default:
	}
}

func (p *polled[V]) isEssential() bool { return false }
func (p *polled[V]) endPause()         { p.Look() }

// restart calls Ask again without waiting for a running call.
func (p *polled[V]) restart() {
	p.Look()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endAsk != nil {
		p.endAsk()
	}
}

// Run implements [Source].
func (p *polled[V]) Run(ctx context.Context, to *Reporter) {
	interval := p.what.Interval
	if interval == 0 {
		interval = to.poll
	}
	to.gate.polls(interval)
	p.differ.Report(to.Changed)
	if p.what.OfAPI {
		to.monitor.join(p)
		defer to.monitor.leave(p)
	}
	failures := backoff{most: interval}
	for ctx.Err() == nil {
		p.dropLook()
		asked := time.Now()
		delay := withJitter(interval)
		if failed := p.ask(ctx, to); failed {
			delay = failures.next()
		} else {
			failures.reset()
		}
		p.pause(ctx, delay, asked.Add(p.what.Apart))
	}
}

// dropLook drops a pending request for a read, because the next read serves it.
func (p *polled[V]) dropLook() {
	select {
	case <-p.lookNow:
	default:
	}
}

// pause waits for the delay, or until Look is called, but at least until earliest.
func (p *polled[V]) pause(ctx context.Context, delay time.Duration, earliest time.Time) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-p.lookNow:
		timer.Reset(min(delay, time.Until(earliest)))
	case <-timer.C:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// withJitter returns a slightly different duration, so that polls that began together do not stay together.
func withJitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// setEndAsk stores how to end the running call; nil means that none runs.
func (p *polled[V]) setEndAsk(end context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endAsk = end
}

// ask calls Ask once, and reports whether that failed.
func (p *polled[V]) ask(ctx context.Context, to *Reporter) (failed bool) {
	asking, end := context.WithTimeout(ctx, p.what.Timeout)
	defer end()
	if p.what.OfAPI {
		asking = kube.Unreported(asking) // ask itself reports failures to the monitor
	}
	p.setEndAsk(end)
	began := time.Now()
	answer, err := p.what.Ask(asking)
	p.setEndAsk(nil)
	switch {
	case ctx.Err() != nil || errors.Is(asking.Err(), context.Canceled):
		return false
	case err == nil:
		to.gate.permitList()
		p.differ.Change(func(facts *Facts[V]) { p.what.replace(facts, answer) })
		to.monitor.recordRead(p, began)
		return false
	case isRefused(err):
		to.gate.refuseList(err)
		to.monitor.recordRead(p, began)
		return false
	}
	p.failed(began, err, to)
	return true
}

// failed records a failure other than a refusal.
func (p *polled[V]) failed(began time.Time, err error, to *Reporter) {
	level := slog.LevelWarn
	if p.what.OfAPI && errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		level = slog.LevelDebug // an outage is logged once, not once for each source
		to.monitor.recordNoAnswer(p, err)
	} else {
		to.monitor.recordRead(p, began) // the API server did answer
	}
	to.gate.failList(err, level)
}
