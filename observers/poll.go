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

// ErrAbsent is what Ask returns, wrapped, when there is nothing that could be
// asked: an add-on that is not installed. An error of the Kubernetes API that says
// "not found" or "forbidden" means the same.
var ErrAbsent = errors.New("not there")

// defaultPollTimeout is how long an answer may take where nobody says.
const defaultPollTimeout = 10 * time.Second

// Polled is what [Poll] observes: what has no watch, like a command's answer, a TLS
// handshake, a health page, or objects of which only "get" is granted.
type Polled[V any] struct {
	Noun[V]
	Name string
	// Ask returns everything there is, by key, reduced to what decisions need: what
	// is missing in the answer no longer exists. It must return soon after its
	// context ends. It is called by one goroutine at a time.
	Ask func(context.Context) (map[string]V, error)
	// Interval is how often to ask, give or take a tenth; default is the observers'
	// PollInterval.
	Interval time.Duration
	// Timeout is how long an answer may take; default 10s.
	Timeout time.Duration
	// Apart is how far apart questions are at least that are put because of a Look.
	Apart time.Duration
	// OfAPI: it is the Kubernetes API that is asked. No answer is then a sign of an
	// outage, and an outage has ended only when this was asked anew.
	OfAPI bool
}

// Poll returns a source that asks again and again. After a failure it asks again
// soon, then less and less often down to the interval. Nothing is concluded from a
// failure: what the journal has stays. It is never [Essential].
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
	// endAsk ends the question that is under way, nil when there is none.
	endAsk context.CancelFunc
}

var _ reader = (*polled[any])(nil)

func (p *polled[V]) Name() string           { return p.what.Name }
func (p *polled[V]) Due(at time.Time) Batch { return p.differ.Due(at) }

// Look implements [Source]. An answer that is under way may be older than what
// there is to see, so that it is asked again after it.
func (p *polled[V]) Look() {
	select {
	case p.lookNow <- struct{}{}:
	default:
	}
}

func (p *polled[V]) isEssential() bool { return false }
func (p *polled[V]) hurry()            { p.Look() }

// restart asks anew; an answer that is under way is not waited for.
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
		p.expectLook()
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

// expectLook forgets a request that the next question answers.
func (p *polled[V]) expectLook() {
	select {
	case <-p.lookNow:
	default:
	}
}

// pause waits for that time, or until somebody wants it looked, but not before earliest.
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

// around returns a time that differs a little from the one given, so that things
// that began together do not stay together.
func around(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// underWay notes how to end the question that is under way, nil for none.
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
		asking = kube.Unreported(asking) // the monitor hears of failures from here
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

// failed notes that there was no answer that says anything.
func (p *polled[V]) failed(began time.Time, err error, to *Reporter) {
	level := slog.LevelWarn
	if p.what.OfAPI && errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		level = slog.LevelDebug // an outage is said once, not once for each source
		to.monitor.failing(p, err)
	} else {
		to.monitor.synced(p, began) // the API server did answer
	}
	to.gate.failList(err, level)
}
