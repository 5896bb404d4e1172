package loadbalancer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "loadbalancer"

// The states of the load balancer of a node.
const (
	Behind   journal.State = "Behind"
	Updating journal.State = "Updating"
	InStep   journal.State = "InStep"
	Removed  journal.State = "Removed"
)

// Policy is what the configuration says of it, and the version of EKCO.
type Policy struct {
	// Enabled is enable_internal_load_balancer, Image internal_load_balancer_haproxy_image.
	Enabled bool
	Image   string
	// Version is how the manifest is laid out, Layout how the configuration is written.
	Version, Layout string
}

func policyOf(p fsm.Policy) Policy {
	of, _ := p.Of[Machine].(Policy)
	return of
}

// balancer is what the machine keeps of one.
type balancer struct {
	Facts journal.LoadBalancerFacts `json:"facts"`
	// WasReady is set once the node was ready: before, its API server is none to lead to.
	WasReady bool `json:"was_ready,omitempty"`
	// Proved is what HAProxy was seen to run with last.
	Proved *proved `json:"proved,omitempty"`
	// Tried is what the last action was to make of it, whatever came of it.
	Tried *journal.LoadBalancerInput `json:"tried,omitempty"`
	// Lost is why it is gone, if it is.
	Lost string `json:"lost,omitempty"`
}

// proved is what an action has proved of a load balancer.
type proved struct {
	Input journal.LoadBalancerInput `json:"input"`
	// Image and Version are those of the manifest; Image is empty if there is none.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
}

func of(t *fsm.Thing) *balancer { return t.Data.(*balancer) }

// Capability returns what EKCO can do about them.
func Capability() fsm.Capability { return fsm.Capability{Machine: machine{}, Kinds: kinds()} }

// Known returns the facts of those that exist, as far as the journal knows, by name.
func Known(s *fsm.State) map[string]journal.LoadBalancerFacts {
	known := map[string]journal.LoadBalancerFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.FactsSeq != 0 && t.GoneSeq == 0 {
			known[t.Name] = of(t).Facts
		}
	}
	return known
}

// machine implements [fsm.Machine] and those of its options that are below.
type machine struct{}

var (
	_ fsm.Observing     = machine{}
	_ fsm.ActionFolder  = machine{}
	_ fsm.Adopter       = machine{}
	_ fsm.Reconsidering = machine{}
)

func (machine) Name() string { return Machine }

func (machine) New(*fsm.Thing) any { return &balancer{} }

// Fold has nothing to fold: there are no event types of the machine's own.
func (machine) Fold(*fsm.State, journal.Event, journal.Payload) bool { return false }

// Observed implements [fsm.Observing]. What was proved of a node is not proved of another that has
// its name.
func (machine) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	var now journal.LoadBalancerFacts
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of the load balancer on %s: %w", t.Name, err)
	}
	b := of(t)
	if b.Facts.NodeUID != now.NodeUID {
		*b = balancer{}
	}
	b.Facts, b.WasReady, b.Lost = now, b.WasReady || now.Ready, ""
	return nil
}

// Gone implements [fsm.Observing].
func (machine) Gone(t *fsm.Thing, _ journal.Event, reason string) { of(t).Lost = reason }

// Adopt implements [fsm.Adopter]: what is not known of the node is observed soon.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject.Kind != journal.KindLoadBalancer || subject.Name == "" {
		return false
	}
	s.Add(Machine, subject, Behind, e.Time)
	return true
}

// Opened implements [fsm.ActionFolder].
func (machine) Opened(s *fsm.State, _ *fsm.Thing, _ *journal.ActionRecord) { s.Changed(Machine) }

// Ended implements [fsm.ActionFolder]: what was done is proved, what was not may have changed
// anything.
func (machine) Ended(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	s.Changed(Machine)
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil {
		return true
	}
	b := of(t)
	b.Tried = &input
	on, left := onNode(rec)
	switch {
	case input.NodeUID != b.Facts.NodeUID && t.FactsSeq != 0:
	case ended.Outcome == journal.OutcomeDone && left:
		b.Proved = &proved{input, on.Image, on.Version}
	case len(rec.Steps) > 0 && ended.Outcome != journal.OutcomeDryRun:
		b.Proved = nil
	}
	return true
}

// onNode returns what the action's program has left on the node.
func onNode(rec *journal.ActionRecord) (on journal.LoadBalancerOnNode, is bool) {
	step := rec.Steps[journal.StepWriteLoadBalancer+" "+rec.Subject.Name]
	var outcome struct {
		Result *journal.LoadBalancerOnNode `json:"result"`
	}
	if len(step.Outputs) == 0 || json.Unmarshal(step.Outputs, &outcome) != nil || outcome.Result == nil {
		return on, false
	}
	return *outcome.Result, true
}

// sum is what all of them come to.
type sum struct {
	// primaries are those to lead to, by the names of their nodes, and since is the last event
	// that told of one.
	primaries []string
	since     uint64
	// next are those that may be updated now.
	next map[*fsm.Thing]bool
}

// atOnce is how many updates are open at a time: enough that as many run as may, and few, since open
// actions are mirrored.
const atOnce = 16

func sumOf(w *fsm.World) *sum {
	return w.Sum(Machine, func() any {
		all := map[string]*fsm.Thing{}
		for _, t := range w.Things {
			if t.Machine() == Machine && t.FactsSeq != 0 && t.GoneSeq == 0 {
				all[t.Name] = t
			}
		}
		s := &sum{next: map[*fsm.Thing]bool{}}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if b := of(all[name]); b.Facts.Primary && b.WasReady && b.Facts.Address != "" {
				s.primaries, s.since = append(s.primaries, b.Facts.Address), max(s.since, all[name].FactsSeq)
			}
		}
		s.choose(w, all)
		return s
	}).(*sum)
}

// choose chooses those that may be updated, first those for which that was tried the longest ago.
func (s *sum) choose(w *fsm.World, all map[string]*fsm.Thing) {
	var waiting []*fsm.Thing
	busy, places := map[string]bool{}, atOnce
	for _, rec := range w.Actions {
		if rec.Kind != journal.ActionUpdateLoadBalancer && rec.Kind != journal.ActionRestartLoadBalancer {
			continue
		}
		busy[rec.Subject.Name] = true
		if rec.Kind == journal.ActionUpdateLoadBalancer && rec.Stalled == nil {
			places--
		}
	}
	for _, t := range all {
		if of(t).Facts.Ready && !busy[t.Name] && !of(t).serves(s.shall(w, t)) {
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(waiting, func(a, b *fsm.Thing) int { return cmp.Or(cmp.Compare(tried(a), tried(b)), cmp.Compare(a.Name, b.Name)) })
	for _, t := range waiting[:min(len(waiting), max(0, places))] {
		s.next[t] = true
	}
}

// tried is the event with which the last update ended.
func tried(t *fsm.Thing) uint64 {
	if last := t.Last[journal.ActionUpdateLoadBalancer]; last != nil {
		return last.Seq
	}
	return 0
}

// shall is what the load balancer of a node shall be.
func (s *sum) shall(w *fsm.World, t *fsm.Thing) journal.LoadBalancerInput {
	p, facts := policyOf(w.Policy), of(t).Facts
	return journal.LoadBalancerInput{NodeUID: facts.NodeUID, Address: facts.Address, Primaries: s.primaries, Image: p.Image, Layout: p.Layout}
}

// serves reports whether it is proved to lead where it shall.
func (b *balancer) serves(shall journal.LoadBalancerInput) bool {
	return b.Proved != nil && b.Proved.Input.Serves(shall)
}

// inStep reports whether it is proved to be all that it shall be.
func (b *balancer) inStep(shall journal.LoadBalancerInput, p Policy) bool {
	return b.serves(shall) && b.Proved.Image == p.Image && b.Proved.Version == p.Version
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	s := sumOf(w)
	switch {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Updating
	case of(t).inStep(s.shall(w, t), policyOf(w.Policy)):
		return InStep
	}
	return Behind
}

// rest is how long EKCO lets be what was ended early, if nothing new is seen of the node and
// nothing else is wanted.
const rest = time.Minute

// Wants wants the primaries everywhere first, without a restart, and then the manifest.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	p, b := policyOf(w.Policy), of(t)
	if !p.Enabled || t.FactsSeq == 0 || t.GoneSeq != 0 || !b.Facts.Ready || len(w.Open(t)) > 0 {
		return
	}
	s := sumOf(w)
	shall := s.shall(w, t)
	kind := journal.ActionUpdateLoadBalancer
	switch {
	case len(s.primaries) == 0, b.inStep(shall, p), !b.serves(shall) && !s.next[t]:
		return
	case b.serves(shall):
		kind = journal.ActionRestartLoadBalancer
	}
	due, may := b.again(t, kind, shall, w.Policy)
	if may {
		want(fsm.Want{Kind: kind, Due: due, Rank: t.Since})
	}
}

// again returns when an action may be asked for, and whether it may.
func (b *balancer) again(t *fsm.Thing, kind journal.ActionKind, shall journal.LoadBalancerInput, p fsm.Policy) (due time.Time, may bool) {
	if t.Last[kind] == nil || b.Tried == nil || !b.Tried.Serves(shall) || b.Tried.Image != shall.Image {
		return time.Time{}, true
	}
	return t.Again(kind, p, rest)
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	s := sumOf(w)
	shall := s.shall(w, t)
	return journal.ActionRequested{Reason: reason(of(t), kind.Name, shall, policyOf(w.Policy)), Input: shall}, max(s.since, t.FactsSeq)
}

// Obsolete leaves alone what is done to a node that can do it. One that is away is done when it is
// back, and holds up nobody.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	switch b := of(t); {
	case err != nil, t.Newest() == 0:
		return ""
	case t.GoneSeq != 0:
		return "the load balancer is no business of EKCO's any more: " + b.Lost
	case b.Facts.NodeUID != input.NodeUID:
		return "the node was replaced by another of its name"
	case !b.Facts.Ready:
		return "the node is not ready; its load balancer is brought in step when it is"
	}
	return ""
}

// Outdated implements [fsm.Reconsidering]: what has not begun, or stalled, need not do what nobody
// wants any more.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil || t.FactsSeq == 0 || len(rec.Steps) > 0 && rec.Stalled == nil {
		return ""
	}
	shall := sumOf(w).shall(w, t)
	if len(shall.Primaries) == 0 || input.Serves(shall) && input.Image == shall.Image {
		return ""
	}
	return "it shall be something else by now: " + primariesAre(shall.Primaries) + ", image " + shall.Image
}
