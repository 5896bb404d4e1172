package observers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

const (
	// gather is how long the outbox waits for more after the first change, so
	// that a burst becomes few batches.
	gather = 10 * time.Millisecond
	// recordAgain is the time between two tries to write to a journal that
	// cannot be written.
	recordAgain = time.Second
)

// outbox holds the facts and writes what the journal does not have yet. Its
// mutex is held for memory operations only, never while the journal is written,
// so a slow disk holds up no watch.
type outbox struct {
	recorder Recorder
	log      *slog.Logger
	lag      func(resource string, lag time.Duration)
	now      func() time.Time
	wake     chan struct{}
	// listed is closed once the first list of nodes is in the journal.
	listed chan struct{}

	mu    sync.Mutex
	nodes nodeFacts
	pods  podFacts
	api   apiFacts

	// failing is set while the journal cannot be written. Only run uses it.
	failing bool
}

func newOutbox(options Options) *outbox {
	lag := options.Lag
	if lag == nil {
		lag = func(string, time.Duration) {}
	}
	now := options.Now
	if now == nil {
		now = time.Now
	}
	return &outbox{
		recorder: options.Recorder, log: options.Log, lag: lag, now: now,
		wake: make(chan struct{}, 1), listed: make(chan struct{}),
		nodes: newNodeFacts(options.Known.Nodes, options.Settles), pods: newPodFacts(options.Known),
	}
}

// change applies a change of the facts and has the difference written, if there
// may be one.
func (o *outbox) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	if !o.mayBeDue() {
		return
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) mayBeDue() bool {
	if o.nodes.pending.any() || o.pods.pending.any() || o.api.waiting() {
		return true
	}
	select {
	case <-o.listed:
		return false
	default:
		return o.nodes.listed
	}
}

func (o *outbox) apiLost(since time.Time, err error) {
	o.change(func() { o.api.lose(since, err.Error()) })
}

func (o *outbox) apiRecovered() {
	o.change(func() { o.api.recover() })
}

// run writes until ctx ends.
func (o *outbox) run(ctx context.Context) {
	ripe := time.NewTimer(0)
	defer ripe.Stop()
	for {
		ripe.Reset(o.untilRipe())
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-ripe.C:
		}
		delay := gather
		for {
			if !sleep(ctx, delay) {
				return
			}
			if o.flush(ctx) {
				break
			}
			delay = recordAgain
		}
	}
}

// idle is how long the writer sleeps when nothing becomes due by itself.
const idle = time.Hour

// untilRipe returns how long it takes until facts are due that nobody changes.
func (o *outbox) untilRipe() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.nodes.next()
	if next.IsZero() {
		return idle
	}
	return max(0, time.Until(next))
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// batch is a set of differences taken together.
type batch struct {
	nodes nodeChanges
	pods  podChanges
	api   apiChanges
	// complete: the nodes' list is part of this batch or an earlier one.
	complete bool
}

// drafts in an order that tells the story: an outage begins, what was seen, an
// outage ends.
func (b batch) drafts() []journal.Draft {
	var drafts []journal.Draft
	drafts = append(drafts, b.api.before...)
	drafts = append(drafts, b.nodes.drafts...)
	drafts = append(drafts, b.pods.drafts...)
	return append(drafts, b.api.after...)
}

// flush writes what is due in one batch, and reports whether that worked.
func (o *outbox) flush(ctx context.Context) bool {
	o.mu.Lock()
	due := batch{nodes: o.nodes.due(), pods: o.pods.due(), api: o.api.due(o.now), complete: o.nodes.listed}
	o.mu.Unlock()
	drafts := due.drafts()
	if len(drafts) > 0 {
		if err := o.recorder.Record(ctx, drafts...); err != nil {
			o.mu.Lock()
			o.nodes.pending.restore(due.nodes.taken)
			o.pods.pending.restore(due.pods.taken)
			o.mu.Unlock()
			o.refused(ctx, len(drafts), err)
			return false
		}
	}
	o.mu.Lock()
	o.nodes.written(due.nodes)
	o.pods.written(due.pods)
	o.api.written(due.api)
	o.mu.Unlock()
	o.recorded(due)
	return true
}

func (o *outbox) refused(ctx context.Context, events int, err error) {
	if ctx.Err() != nil || o.failing {
		return
	}
	o.failing = true
	o.log.Warn("facts cannot be written to the journal; they are kept and tried again",
		"events", events, "every", recordAgain, "error", err)
}

func (o *outbox) recorded(due batch) {
	if o.failing {
		o.failing = false
		o.log.Info("facts are written to the journal again")
	}
	if since := due.nodes.since; !since.IsZero() {
		o.lag("nodes", max(0, time.Since(since)))
	}
	if since := due.pods.since; !since.IsZero() {
		o.lag("pods", max(0, time.Since(since)))
	}
	if !due.complete {
		return
	}
	select {
	case <-o.listed:
	default:
		close(o.listed)
	}
}
