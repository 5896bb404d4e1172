package observers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Actors under which facts are recorded.
const (
	ActorNode = "observer/node"
	ActorPod  = "observer/pod"
	ActorAPI  = "observer/api"
)

// Recorder writes facts. Record returns nil once the drafts are durable; after
// an error none of them is, and they are offered again.
type Recorder interface {
	Record(ctx context.Context, drafts ...journal.Draft) error
}

// Cluster is what the observers ask of the Kubernetes API.
type Cluster interface {
	// Nodes is the source of all Nodes.
	Nodes() kube.Source
	// PodsOn is the source of the Pods on a node; of all Pods for "".
	PodsOn(node string) kube.Source
	// Probe returns an error when the API server does not answer.
	Probe(ctx context.Context) error
}

// Known is what the journal says exists, so that only differences are written.
type Known struct {
	// Nodes that exist, without those recorded as gone.
	Nodes []kube.Node
	// Pods recorded as terminating and not as gone, by the UID of their node.
	Pods map[string][]journal.PodRef
}

// Options of [Start]. Cluster, Recorder and Log must be set.
type Options struct {
	Cluster  Cluster
	Recorder Recorder
	Known    Known
	Log      *slog.Logger
	// Now reads the clock that the journal's times are by; nil means time.Now.
	Now func() time.Time
	// PollInterval is how often to list what must not be watched; default 1m.
	PollInterval time.Duration
	// Settles is how long a node that flaps must be lost for that loss to be told;
	// default 1m. It must be less than the time after which anything is done about
	// a lost node.
	Settles time.Duration
	// Lag, when set, is told how long the oldest change of a batch took from
	// happening in the cluster to being in the journal. The API's times have a
	// resolution of one second; where it gives none, the time counts from when
	// the change was seen. Changes found by a list count in no lag. It must not
	// block.
	Lag func(resource string, lag time.Duration)
}

// Observers are running observers.
type Observers struct {
	outbox  *outbox
	monitor *monitor
	pods    *podWatches
	gates   []*gate
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start begins to observe, until ctx ends or [Observers.Stop] is called.
func Start(ctx context.Context, options Options) *Observers {
	if options.PollInterval == 0 {
		options.PollInterval = time.Minute
	}
	ctx, stop := context.WithCancel(kube.WithLogger(ctx, options.Log))
	out := newOutbox(options)
	health := newMonitor(options.Cluster.Probe, out, options.Log)
	nodeGate := newGate("nodes", options.PollInterval, options.Log)
	podGate := newGate("pods", options.PollInterval, options.Log)
	o := &Observers{
		outbox: out, monitor: health, stop: stop, gates: []*gate{nodeGate, podGate},
		pods: newPodWatches(options.Cluster, out, health, podGate),
	}
	nodes := newFeed("nodes", options.Cluster.Nodes(), &nodeSink{out: out}, nodeGate, health)
	nodes.essential = true
	o.running.Go(func() { out.run(ctx) })
	o.running.Go(func() { health.run(ctx) })
	o.running.Go(func() { nodes.run(ctx) })
	o.running.Go(func() { o.pods.run(ctx) })
	return o
}

// Stop ends the observers and waits for them. Facts that are not in the journal
// yet are left for the next start, which finds them again.
func (o *Observers) Stop() {
	o.stop()
	o.running.Wait()
}

// SetUnknown says on which nodes pods are to be watched: UID by name. The pods
// reported on a node that is no longer among them are recorded as gone. It does
// not block on the API and costs little when nothing changed.
func (o *Observers) SetUnknown(nodes map[string]string) { o.pods.set(nodes) }

// Suspect tells the observers that a call failed. When err says that the API
// server did not answer, they find out whether that is so in general. Other
// errors, and nil, are ignored.
func (o *Observers) Suspect(err error) {
	if errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		o.monitor.suspect(err)
	}
}

// Synced reports whether the journal is up to date with the cluster's nodes:
// their first list is in the journal and there is no API outage.
func (o *Observers) Synced() bool {
	select {
	case <-o.outbox.listed:
		return !o.monitor.outage()
	default:
		return false
	}
}

// WaitSynced returns once the first list of nodes is in the journal, or with an
// error when ctx ends before that.
func (o *Observers) WaitSynced(ctx context.Context) error {
	select {
	case <-o.outbox.listed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first list of nodes: %w", ctx.Err())
	}
}

// Absent lists for people what cannot be observed, or not by watching.
func (o *Observers) Absent() []string {
	var absent []string
	for _, g := range o.gates {
		if text := g.absence(); text != "" {
			absent = append(absent, text)
		}
	}
	return absent
}
