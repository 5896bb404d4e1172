package pods

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is the actor of events about pods.
const Actor = "observer/pod"

// Options of [New].
type Options struct {
	// On returns the source of the Pods on a node, or of all Pods for "".
	On func(node string) kube.Source
	// Known has the terminating pods according to the journal.
	Known []Known
}

// Known has the pods on one node according to the journal.
type Known struct {
	Node, NodeUID string
	// Terminating has the pods that are recorded as terminating and not as gone.
	Terminating []journal.PodRef
}

// Source is the source of facts about terminating pods on lost nodes.
type Source struct {
	on      func(node string) kube.Source
	facts   facts
	changed chan struct{}

	mu sync.Mutex
	// want has the nodes whose pods are watched, UID by name. It is nil until Follow is called.
	want map[string]string
	look bool
}

var _ observers.ThingFollower = (*Source)(nil)

// New returns a source that watches nothing until [Source.Follow] is called.
func New(options Options) *Source {
	return &Source{on: options.On, facts: newFacts(options.Known), changed: make(chan struct{}, 1)}
}

// Name implements [observers.Source].
func (s *Source) Name() string { return "pods" }

// Due implements [observers.Source].
func (s *Source) Due(at time.Time) observers.Batch { return s.facts.differ.Due(at) }

// Look implements [observers.Source].
func (s *Source) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look = true
	s.signal()
}

// Follow watches the pods on lost nodes. Pods on a node that is no longer lost are recorded as gone.
func (s *Source) Follow(things iter.Seq[observers.Thing]) { s.set(Lost(things)) }

// Lost returns the nodes whose pods must be watched, UID by name. These are unreachable nodes whose machine has noticed
// the loss.
func Lost(things iter.Seq[observers.Thing]) map[string]string {
	lost := make(map[string]string)
	for thing := range things {
		node, ok := thing.Data.(reachability)
		if ok && thing.Subject.Kind == "Node" && !thing.Gone && hasNoticedLoss(thing.State) && node.Lost() {
			lost[thing.Subject.Name] = thing.Subject.UID
		}
	}
	return lost
}

// reachability is the part of a node machine's state that this source reads.
type reachability interface {
	// Lost reports whether the node is unreachable according to its last facts.
	Lost() bool
}

// hasNoticedLoss reports whether the state of a node's machine is one that follows a loss.
func hasNoticedLoss(state string) bool {
	switch state {
	case "Unknown", "Clearing", "Cleared", "Purging":
		return true
	}
	return false
}

// set sets the nodes whose pods are watched. It does not wait for the API, and is cheap if nothing changes.
func (s *Source) set(nodes map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want != nil && maps.Equal(s.want, nodes) {
		return
	}
	s.want = maps.Clone(nodes)
	if s.want == nil {
		s.want = map[string]string{}
	}
	s.signal()
}

func (s *Source) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run implements [observers.Source].
func (s *Source) Run(ctx context.Context, to *observers.Reporter) {
	s.facts.differ.Report(to.Changed)
	watches := newWatches(s.on, &s.facts, to)
	defer watches.wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		want, look := s.take()
		if want != nil {
			watches.arrange(ctx, want)
		}
		if look {
			watches.look()
		}
	}
}

func (s *Source) take() (want map[string]string, look bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look, s.look = s.look, false
	return s.want, look
}
