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

// Recorder writes facts. Record returns nil once all drafts are on disk. After an error no draft is on disk, and the
// observers offer them again.
type Recorder interface {
	Record(ctx context.Context, drafts ...journal.Draft) error
}

// Options configures [Start]. Probe, Recorder and Log must be set.
type Options struct {
	// Sources lists the sources, in the order of their facts in a batch. Their names must differ.
	Sources []Source
	// Probe returns an error if the Kubernetes API server does not answer.
	Probe    func(ctx context.Context) error
	Recorder Recorder
	Log      *slog.Logger
	// Now returns the time by the journal's clock; nil means time.Now.
	Now func() time.Time
	// PollInterval is the interval of lists of resources without a watch (default 1m).
	PollInterval time.Duration
	// Lag is called with the time from the oldest change in a source's batch to its record in the journal. The API's
	// times have a resolution of one second. For a change without a time in the API, the lag begins when EKCO saw the
	// change. Changes that a complete read found do not count. Lag must not block. It may be nil.
	Lag func(resource string, lag time.Duration)
}

// Observers controls running observers.
type Observers struct {
	outbox    *outbox
	monitor   *outageMonitor
	sources   []Source
	reporters []*Reporter
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// Start starts the observers. They run until ctx ends or [Observers.Stop] is called.
func Start(ctx context.Context, options Options) *Observers {
	if options.PollInterval == 0 {
		options.PollInterval = time.Minute
	}
	ctx, stop := context.WithCancel(kube.WithLogger(ctx, options.Log))
	out := newOutbox(options)
	o := &Observers{
		outbox: out, monitor: newOutageMonitor(options.Probe, out.outages, options.Log),
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

// Stop stops the observers and waits until they have ended. The next start finds all facts again that are not in the
// journal.
func (o *Observers) Stop() {
	o.stop()
	o.running.Wait()
}

// Follow passes the state of the machines to the sources that need it. It does not block.
func (o *Observers) Follow(things iter.Seq[Thing]) {
	for _, source := range o.sources {
		if follower, ok := source.(ThingFollower); ok {
			follower.Follow(things)
		}
	}
}

// Look makes the source with this name read at once. It ignores an unknown name.
func (o *Observers) Look(name string) {
	for _, source := range o.sources {
		if source.Name() == name {
			source.Look()
		}
	}
}

// ReportFailedCall reports a failed call. If err says that the API server did not answer, the observers probe the
// server. They ignore other errors and nil.
func (o *Observers) ReportFailedCall(err error) {
	if errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		o.monitor.suspectOutage(err)
	}
}

// Synced reports whether the journal is up to date with the cluster: the first read of each essential source is in the
// journal, and there is no API outage.
func (o *Observers) Synced() bool {
	select {
	case <-o.outbox.firstReadDone:
		return !o.monitor.outage()
	default:
		return false
	}
}

// WaitSynced waits until the first read of each essential source is in the journal. It returns an error if ctx ends
// before that.
func (o *Observers) WaitSynced(ctx context.Context) error {
	select {
	case <-o.outbox.firstReadDone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first read of the cluster: %w", ctx.Err())
	}
}

// Absent lists texts for persons about what EKCO cannot observe at all, or cannot watch. It does not repeat an outage
// for each source.
func (o *Observers) Absent() []string {
	var absent []string
	outage := o.monitor.outage()
	for _, reporter := range o.reporters {
		if text := reporter.gate.absenceText(outage); text != "" {
			absent = append(absent, text)
		}
	}
	return absent
}
