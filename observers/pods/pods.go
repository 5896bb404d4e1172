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

// Actor is under whom facts of pods are recorded.
const Actor = "observer/pod"

// Options of [New].
type Options struct {
	// On returns the source of the Pods on a node; of all Pods for "".
	On func(node string) kube.Source
	// Known are the pods that the journal says are terminating.
	Known []Known
}

// Known is what the journal knows of the pods on one node.
type Known struct {
	Node, NodeUID string
	// Terminating are those recorded as terminating and not as gone.
	Terminating []journal.PodRef
}

// Source tells of pods on lost nodes that were asked to end.
type Source struct {
	on      func(node string) kube.Source
	facts   facts
	changed chan struct{}

	mu sync.Mutex
	// want are the nodes whose pods matter, UID by name; nil until somebody says.
	want map[string]string
	look bool
}

var _ observers.Follower = (*Source)(nil)

// New returns a source that looks nowhere until [Source.Follow] says where.
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

// Follow watches pods on the nodes that are lost. The pods reported on a node that
// no longer is are recorded as gone.
func (s *Source) Follow(things iter.Seq[observers.Thing]) { s.set(Lost(things)) }

// Lost returns the nodes whose pods are worth watching, UID by name: those that
// are unreachable, and that the machine has noticed so.
func Lost(things iter.Seq[observers.Thing]) map[string]string {
	lost := make(map[string]string)
	for thing := range things {
		node, ok := thing.Data.(reachability)
		if ok && thing.Subject.Kind == "Node" && !thing.Gone && noticed(thing.State) && node.Lost() {
			lost[thing.Subject.Name] = thing.Subject.UID
		}
	}
	return lost
}

// reachability is what is asked of what a node's machine keeps.
type reachability interface {
	// Lost reports whether the node is unreachable by its last facts.
	Lost() bool
}

// noticed reports whether a node's machine is in a state that follows its loss.
func noticed(state string) bool {
	switch state {
	case "Unknown", "Clearing", "Cleared", "Purging":
		return true
	}
	return false
}

// set says on which nodes pods matter. It does not block on the API and costs
// little when nothing changed.
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
