package observers

import (
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Reporter is the connection of a running source to the engine. Each source has one.
type Reporter struct {
	outbox    *outbox
	monitor   *outageMonitor
	gate      *gate
	poll      time.Duration
	essential bool
}

func newReporter(source Source, o *Observers, options Options) *Reporter {
	r := &Reporter{
		outbox: o.outbox, monitor: o.monitor, poll: options.PollInterval,
		gate: newGate(source.Name(), options.PollInterval, options.Log), essential: essential(source),
	}
	r.gate.essential = r.essential
	return r
}

func essential(source Source) bool {
	e, ok := source.(Essential)
	return ok && e.Essential()
}

// Changed makes the engine call the source's Due.
func (r *Reporter) Changed() { r.outbox.changed() }

// Feed returns a feed that keeps the sink up to date with one part of the source. name is for persons. All feeds of a
// source share their knowledge of EKCO's permissions.
func (r *Reporter) Feed(name string, from kube.Source, to Sink) *Feed {
	feed := newFeed(name, from, to, r.gate, r.monitor)
	feed.essential = r.essential
	return feed
}
