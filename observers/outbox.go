package observers

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

const (
	// batchDelay is how long the outbox waits for more changes after the first one, so that a burst needs few batches.
	batchDelay = 10 * time.Millisecond
	// recordRetryInterval is the time between two attempts to write to an unwritable journal.
	recordRetryInterval = time.Second
)

// outbox writes the differences of all sources. It holds no lock while it writes, so that a slow disk blocks no source.
type outbox struct {
	recorder Recorder
	log      *slog.Logger
	lag      func(resource string, lag time.Duration)
	outages  *outages
	sources  []Source
	wake     chan struct{}
	// firstReadDone is closed once the first read of each essential source is in the journal.
	firstReadDone chan struct{}

	// Only run uses the fields below. failing is true while the journal cannot be written. again is when something must
	// be recorded even if nothing changes.
	failing bool
	again   time.Time
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
	o := &outbox{
		recorder: options.Recorder, log: options.Log, lag: lag, sources: options.Sources,
		outages: newOutages(now), wake: make(chan struct{}, 1), firstReadDone: make(chan struct{}),
	}
	o.outages.differ.Report(o.changed)
	if !slices.ContainsFunc(o.sources, essential) {
		close(o.firstReadDone)
	}
	return o
}

// changed triggers a write.
func (o *outbox) changed() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run writes batches until ctx ends.
func (o *outbox) run(ctx context.Context) {
	ripe := time.NewTimer(0)
	defer ripe.Stop()
	for {
		ripe.Reset(o.untilDue())
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-ripe.C:
		}
		delay := batchDelay
		for {
			if !Pause(ctx, delay) {
				return
			}
			if o.flush(ctx) {
				break
			}
			delay = recordRetryInterval
		}
	}
}

// maxIdle is how long the outbox waits at most if nothing changes.
const maxIdle = time.Hour

// untilDue returns the time until something must be recorded even if nothing changes.
func (o *outbox) untilDue() time.Duration {
	if o.again.IsZero() {
		return maxIdle
	}
	return max(0, time.Until(o.again))
}

// Pause waits for d. It returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// flush writes all present differences in one batch, and reports whether that succeeded.
func (o *outbox) flush(ctx context.Context) bool {
	due := o.collect(time.Now())
	if drafts := due.drafts(); len(drafts) > 0 {
		if err := o.recorder.Record(ctx, drafts...); err != nil {
			due.refused()
			o.refused(ctx, len(drafts), err)
			return false
		}
	}
	due.written()
	o.recorded(due)
	return true
}

func (o *outbox) refused(ctx context.Context, events int, err error) {
	if ctx.Err() != nil || o.failing {
		return
	}
	o.failing = true
	o.log.Warn("cannot write facts to the journal; EKCO keeps them and retries",
		"events", events, "every", recordRetryInterval, "error", err)
}

func (o *outbox) recorded(due collected) {
	if o.failing {
		o.failing = false
		o.log.Info("the journal accepts facts again")
	}
	o.again = time.Time{}
	complete := true
	for i, batch := range due.batches {
		if !batch.Since.IsZero() {
			o.lag(o.sources[i].Name(), max(0, time.Since(batch.Since)))
		}
		o.again = Earlier(o.again, batch.Again)
		complete = complete && (batch.Looked || !essential(o.sources[i]))
	}
	if !complete {
		return
	}
	select {
	case <-o.firstReadDone:
	default:
		close(o.firstReadDone)
	}
}

// collected has the differences of one batch.
type collected struct {
	outages       Batch
	before, after []journal.Draft
	batches       []Batch
}

// collect reads the outages first. If an outage has ended, the sources' batches then include everything that was read
// before its end.
func (o *outbox) collect(at time.Time) collected {
	var all collected
	all.outages, all.before, all.after = o.outages.due(at)
	for _, source := range o.sources {
		all.batches = append(all.batches, source.Due(at))
	}
	return all
}

// drafts returns all drafts in chronological order: the start of an outage, the facts of each source, the end of the
// outage.
func (c collected) drafts() []journal.Draft {
	drafts := c.before[:len(c.before):len(c.before)]
	for _, batch := range c.batches {
		drafts = append(drafts, batch.Drafts...)
	}
	return append(drafts, c.after...)
}

func (c collected) written() {
	c.outages.Written()
	for _, batch := range c.batches {
		batch.Written()
	}
}

func (c collected) refused() {
	c.outages.Refused()
	for _, batch := range c.batches {
		batch.Refused()
	}
}
