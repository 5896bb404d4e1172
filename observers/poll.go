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

// ErrAbsent is what Ask returns, wrapped, if there is nothing to ask, such as an add-on that is not installed. "Not
// found" and "forbidden" errors of the Kubernetes API mean the same.
var ErrAbsent = errors.New("does not exist")

// defaultPollTimeout is the default of Timeout.
const defaultPollTimeout = 10 * time.Second

// Polled is what [Poll] observes: something without a watch, like the output of a command, a TLS handshake, a health
// page, or objects with only "get" permission.
type Polled[V any] struct {
	Noun[V]
	Name string
	// Ask returns all things, by key, reduced to what decisions need: what is missing in the answer no longer exists.
	// It must return soon after its context ends. One goroutine calls it at a time.
	Ask func(context.Context) (map[string]V, error)
	// Interval is how often to ask, plus or minus a tenth; default is the observers' PollInterval.
	Interval time.Duration
	// Timeout is how long an answer may take; default 10s.
	Timeout time.Duration
	// Apart is the shortest time between two questions because of a Look.
	Apart time.Duration
	// OfAPI: it asks the Kubernetes API. Then no answer is a sign of an outage, and an outage ends only after it was
	// asked again.
	OfAPI bool
}

// Poll returns a source that asks repeatedly. After a failure it retries soon, then less and less often down to the
// interval. A failure changes no facts. The source is never [Essential].
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
	// endAsk ends the running question, nil if there is none.
	endAsk context.CancelFunc
}

var _ reader = (*polled[any])(nil)

func (p *polled[V]) Name() string           { return p.what.Name }
func (p *polled[V]) Due(at time.Time) Batch { return p.differ.Due(at) }

// Look implements [Source]. A running question may miss the change, so it asks again after it.
func (p *polled[V]) Look() {
	select {
	case p.lookNow <- struct{}{}:
	default:
	}
}

func (p *polled[V]) isEssential() bool { return false }
func (p *polled[V]) hurry()            { p.Look() }

// restart asks again, without waiting for a running question.
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
		delay := around(interval)
		if failed := p.ask(ctx, to); failed {
			delay = failures.next()
		} else {
			failures.reset()
		}
		p.pause(ctx, delay, asked.Add(p.what.Apart))
	}
}

// dropLook drops a waiting request for a read, since the next read answers it.
func (p *polled[V]) dropLook() {
	select {
	case <-p.lookNow:
	default:
	}
}

// pause waits for the delay, or until a Look, but not before earliest.
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

// around returns a slightly different time, so that polls that began together do not stay together.
func around(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// underWay sets how to end the running question, nil for none.
func (p *polled[V]) underWay(end context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endAsk = end
}

// ask asks once, and reports whether that failed.
func (p *polled[V]) ask(ctx context.Context, to *Reporter) (failed bool) {
	asking, end := context.WithTimeout(ctx, p.what.Timeout)
	defer end()
	if p.what.OfAPI {
		asking = kube.Unreported(asking) // ask itself reports failures to the monitor
	}
	p.underWay(end)
	began := time.Now()
	answer, err := p.what.Ask(asking)
	p.underWay(nil)
	switch {
	case ctx.Err() != nil || errors.Is(asking.Err(), context.Canceled):
		return false
	case err == nil:
		to.gate.permitList()
		p.differ.Change(func(facts *Facts[V]) { p.what.replace(facts, answer) })
		to.monitor.synced(p, began)
		return false
	case refused(err):
		to.gate.refuseList(err)
		to.monitor.synced(p, began)
		return false
	}
	p.failed(began, err, to)
	return true
}

// failed records a failure that is not a refusal.
func (p *polled[V]) failed(began time.Time, err error, to *Reporter) {
	level := slog.LevelWarn
	if p.what.OfAPI && errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		level = slog.LevelDebug // an outage is logged once, not once for each source
		to.monitor.failing(p, err)
	} else {
		to.monitor.synced(p, began) // the API server did answer
	}
	to.gate.failList(err, level)
}
