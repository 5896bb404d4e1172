package observers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Recorder writes facts. Record returns nil once the drafts are durable; after
// an error none of them is, and they are offered again.
type Recorder interface {
	Record(ctx context.Context, drafts ...journal.Draft) error
}

// Options of [Start]. Probe, Recorder and Log must be set.
type Options struct {
	// Sources are what is observed, in the order in which their facts are told when
	// they are written together. No two have the same name.
	Sources []Source
	// Probe returns an error when the Kubernetes API server does not answer.
	Probe    func(ctx context.Context) error
	Recorder Recorder
	Log      *slog.Logger
	// Now reads the clock that the journal's times are by; nil means time.Now.
	Now func() time.Time
	// PollInterval is how often to list what must not be watched; default 1m.
	PollInterval time.Duration
	// Lag, when set, is told how long the oldest change of a source's batch took from
	// happening to being in the journal. The API's times have a resolution of one
	// second; where it gives none, the time counts from when the change was seen.
	// Changes found by a whole look count in no lag. It must not block.
	Lag func(resource string, lag time.Duration)
}

// Observers are running observers.
type Observers struct {
	outbox    *outbox
	monitor   *monitor
	sources   []Source
	reporters []*Reporter
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// Start begins to observe, until ctx ends or [Observers.Stop] is called.
func Start(ctx context.Context, options Options) *Observers {
	if options.PollInterval == 0 {
		options.PollInterval = time.Minute
	}
	ctx, stop := context.WithCancel(kube.WithLogger(ctx, options.Log))
	out := newOutbox(options)
	o := &Observers{
		outbox: out, monitor: newMonitor(options.Probe, out.outages, options.Log),
		sources: slices.Clone(options.Sources), stop: stop,
	}
	for _, source := range o.sources {
		o.reporters = append(o.reporters, newReporter(source, o, options))
	}
	o.running.Go(func() { out.run(ctx) })
	o.running.Go(func() { o.monitor.run(ctx) })
	for i, source := range o.sources {
		o.running.Go(func() { source.Run(ctx, o.reporters[i]) })
	}
	return o
}

// Stop ends the observers and waits for them. Facts that are not in the journal
// yet are left for the next start, which finds them again.
func (o *Observers) Stop() {
	o.stop()
	o.running.Wait()
}

// Follow hands on what the machines know to the sources that decide by it where
// they look. It does not block.
func (o *Observers) Follow(things iter.Seq[Thing]) {
	for _, source := range o.sources {
		if follower, ok := source.(Follower); ok {
			follower.Follow(things)
		}
	}
}

// Look has the source of that name look at once. Where there is none, nothing
// happens.
func (o *Observers) Look(name string) {
	for _, source := range o.sources {
		if source.Name() == name {
			source.Look()
		}
	}
}

// Suspect tells the observers that a call failed. When err says that the API
// server did not answer, they find out whether that is so in general. Other
// errors, and nil, are ignored.
func (o *Observers) Suspect(err error) {
	if errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		o.monitor.suspect(err)
	}
}

// Synced reports whether the journal is up to date with the cluster: the first
// look of each essential source is in the journal and there is no API outage.
func (o *Observers) Synced() bool {
	select {
	case <-o.outbox.looked:
		return !o.monitor.outage()
	default:
		return false
	}
}

// WaitSynced returns once the first look of each essential source is in the
// journal, or with an error when ctx ends before that.
func (o *Observers) WaitSynced(ctx context.Context) error {
	select {
	case <-o.outbox.looked:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first look at the cluster: %w", ctx.Err())
	}
}

// Absent lists for people what cannot be observed, or not by watching. While the API server
// does not answer, that is not said again of each.
func (o *Observers) Absent() []string {
	var absent []string
	outage := o.monitor.outage()
	for _, reporter := range o.reporters {
		if text := reporter.gate.absence(outage); text != "" {
			absent = append(absent, text)
		}
	}
	return absent
}
