package loadbalancer

import (
	"cmp"
	"encoding/json"
	"fmt"
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

// Policy has the settings, and what this version of EKCO writes.
type Policy struct {
	// Enabled is enable_internal_load_balancer, Image internal_load_balancer_haproxy_image.
	Enabled bool
	Image   string
	// Version is the file version of the manifest, Layout identifies the format of the configuration.
	Version, Layout string
	// TCPVersion is Version for API servers that refuse anonymous requests.
	TCPVersion string
}

func policyOf(p fsm.Policy) Policy {
	of, _ := p.Of[Machine].(Policy)
	return of
}

// balancer is the state of a load balancer.
type balancer struct {
	Facts journal.LoadBalancerFacts `json:"facts"`
	// WasReady is set once the node was ready: HAProxy does not use its API server before.
	WasReady bool `json:"was_ready,omitempty"`
	// At is the address of its API server in HAProxy's configuration. It stays while the Node has no address.
	At string `json:"at,omitempty"`
	// Former is the first of the addresses that were replaced; "" if HAProxy has that again.
	Former string `json:"former,omitempty"`
	// WasPrimary is set once the node was a primary.
	WasPrimary bool `json:"was_primary,omitempty"`
	// RefusesAnonymous is set after an API server behind it has refused an anonymous request.
	RefusesAnonymous bool `json:"refuses_anonymous,omitempty"`
	// Proved is the last verification of HAProxy.
	Proved *proved `json:"proved,omitempty"`
	// Asked is the event that requested the last action.
	Asked uint64 `json:"asked,omitempty"`
	// Tried is the input of the last action that ended, whatever its outcome.
	Tried *journal.LoadBalancerInput `json:"tried,omitempty"`
	// Runs is the image with which HAProxy was last seen running.
	Runs string `json:"runs,omitempty"`
	// ChangedAt is the end of the last action that changed it, or may have.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Worse is set if the node stopped being ready soon after a change of its load balancer, until it is ready
	// and an action has verified its load balancer.
	Worse bool `json:"worse,omitempty"`
	// Lost says why EKCO no longer manages it; "" if it does.
	Lost string `json:"lost,omitempty"`
	// List is set for the ConfigMap, which uses no other field.
	List *list `json:"list,omitempty"`
}

// proved is the result of an action that verified a load balancer.
type proved struct {
	Input journal.LoadBalancerInput `json:"input"`
	// Image and Version are those of the manifest; Image is empty if there is none.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Started is the start of the verified HAProxy; zero if none ran.
	Started time.Time `json:"started,omitzero"`
	// Asked is the event that requested the action, Seq the one that ended it.
	Asked uint64 `json:"asked,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
}

// of returns the state of a load balancer; nil for the list and for another machine's thing.
func of(t *fsm.Thing) *balancer {
	if b, is := t.Data.(*balancer); is && b.List == nil {
		return b
	}
	return nil
}

// Capability returns the capability for load balancers.
func Capability() fsm.Capability {
	return fsm.Capability{
		Machine: machine{}, Kinds: kinds(),
		Rules: []fsm.Rule{fsm.RolloutRule(RuleRollout, func(w *fsm.World) string { return rolloutOf(w).stopped })},
	}
}

// Known returns the facts of the load balancers that exist according to the journal, by name.
func Known(s *fsm.State) map[string]journal.LoadBalancerFacts {
	known := map[string]journal.LoadBalancerFacts{}
	for _, t := range s.Things {
		if b := of(t); b != nil && t.FactsSeq != 0 && t.GoneSeq == 0 {
			known[t.Name] = b.Facts
		}
	}
	return known
}

// Backends returns the addresses by which HAProxy reaches API servers, or did, the oldest first, by the names of
// their nodes.
func Backends(s *fsm.State) map[string][]string {
	backends := map[string][]string{}
	for _, t := range s.Things {
		if b := of(t); b != nil && t.GoneSeq == 0 && b.WasPrimary && b.At != "" {
			backends[t.Name] = slices.DeleteFunc([]string{b.Former, b.At}, func(a string) bool { return a == "" })
		}
	}
	return backends
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

var _ fsm.Adopter = machine{}

func (machine) Name() string { return Machine }

func (machine) New(t *fsm.Thing) any {
	if t.Kind == journal.KindLoadBalancerList {
		return &balancer{List: &list{}}
	}
	return &balancer{}
}

// Observed implements [fsm.Machine]. A verification does not count for another node of the same name.
func (machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	if l := listOf(t); l != nil {
		return l.observed(t, e, facts)
	}
	var now journal.LoadBalancerFacts
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of the load balancer on %s: %w", t.Name, err)
	}
	b := of(t)
	if b.Facts.NodeUID != now.NodeUID {
		*b = balancer{}
	}
	b.Worse = b.Worse || fsm.LostSoonAfter(b.ChangedAt, b.Facts.Ready, now.Ready, e.Time)
	b.Facts, b.WasReady, b.Lost = now, b.WasReady || now.Ready, ""
	at := backendOf(b.At, now)
	if at == b.Former {
		b.Former = ""
	} else if at != b.At {
		b.Former = cmp.Or(b.Former, b.At)
	}
	b.At, b.WasPrimary = at, b.WasPrimary || now.Primary
	return nil
}

// backendOf returns the address of a node's API server for HAProxy, given the present one or "". An address that
// answers is not replaced. If it does not, it is replaced by the Node's, or else by a former one, that does.
func backendOf(at string, now journal.LoadBalancerFacts) string {
	switch {
	case !now.Asked:
		return cmp.Or(now.Address, at)
	case len(now.Answers) == 0 || slices.Contains(now.Answers, at):
		return at
	case slices.Contains(now.Answers, now.Address):
		return now.Address
	}
	return now.Answers[0]
}

// runs returns the image of the HAProxy on the node, as far as is known. Earlier versions of EKCO kept only
// what they had verified.
func (b *balancer) runs() string {
	if b.Runs == "" && b.Proved != nil {
		return b.Proved.Image
	}
	return b.Runs
}

// answers reports whether its API server answers; true if it was not asked.
func (b *balancer) answers() bool { return !b.Facts.Asked || slices.Contains(b.Facts.Answers, b.At) }

// Gone implements [fsm.Machine]. It drops the verification, since EKCO does not see what changes on the node after
// that.
func (machine) Gone(t *fsm.Thing, _ journal.Event, reason string) {
	if l := listOf(t); l != nil {
		l.Lost = reason
		return
	}
	of(t).Lost, of(t).Proved, of(t).Worse = reason, nil, false
}

// Adopt implements [fsm.Adopter]. An observer soon reports the facts.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject.Name == "" || subject.Kind != journal.KindLoadBalancer && subject.Kind != journal.KindLoadBalancerList {
		return false
	}
	s.Add(Machine, subject, Behind, e.Time)
	return true
}

// Opened implements [fsm.Machine].
func (machine) Opened(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	s.Changed(Machine)
	if l := listOf(t); l != nil {
		l.opened(rec)
		return
	}
	of(t).Asked = s.Seq
}

// Ended implements [fsm.Machine]. An action that succeeded has verified the load balancer; any other may have
// changed it.
func (machine) Ended(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	s.Changed(Machine)
	if l := listOf(t); l != nil {
		l.ended(rec)
		return true
	}
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil {
		return true
	}
	b := of(t)
	b.Tried = &input
	b.RefusesAnonymous = b.RefusesAnonymous || refusesAnonymous(rec)
	on, left := onNode(rec)
	if ended.Outcome == journal.OutcomeCancelled && rec.Stalled != nil && b.Facts.Ready {
		b.Worse = false // the reason of the rule offers "ekco cancel"
	}
	switch {
	case input.NodeUID != b.Facts.NodeUID && t.FactsSeq != 0:
	case ended.Outcome == journal.OutcomeDone && left:
		// A later attempt does not report what an earlier one wrote.
		if on.Config || on.Manifest || rec.Steps[journal.StepWriteLoadBalancer+" "+t.Name].Attempts > 1 {
			b.ChangedAt = s.Time
		}
		b.Worse = !b.Facts.Ready && (b.Worse || b.ChangedAt.Equal(s.Time))
		b.Runs = on.Image
		b.Proved = &proved{Input: input, Image: on.Image, Version: on.Version, Started: started(rec), Asked: b.Asked, Seq: s.Seq}
	case begun(t.Name, rec) && ended.Outcome != journal.OutcomeDryRun:
		b.Proved, b.ChangedAt = nil, s.Time
	}
	return true
}

// Ages implements [fsm.Machine].
func (machine) Ages(t *fsm.Thing, visit func(*time.Time)) {
	if b := of(t); b != nil {
		visit(&b.ChangedAt)
	}
}

// onNode returns what the action's program reported about the node.
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

// started returns the start of the HAProxy that the action verified.
func started(rec *journal.ActionRecord) time.Time {
	var runs journal.LoadBalancerRuns
	if outputs := rec.Steps[journal.StepReloadLoadBalancer].Outputs; len(outputs) == 0 || json.Unmarshal(outputs, &runs) != nil {
		return time.Time{}
	}
	return runs.Started
}

// refusesAnonymous reports whether the action got its answer from an API server that refuses anonymous
// requests.
func refusesAnonymous(rec *journal.ActionRecord) bool {
	var reached journal.LoadBalancerReached
	if outputs := rec.Steps[journal.StepReachLoadBalancer].Outputs; len(outputs) == 0 || json.Unmarshal(outputs, &reached) != nil {
		return false
	}
	return reached.Status == 401 || reached.Status == 403
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	s := sumOf(w)
	switch l := listOf(t); {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Updating
	case l != nil && l.has(s.says), l == nil && s.inStep(w, t):
		return InStep
	}
	return Behind
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	s := sumOf(w)
	if l := listOf(t); l != nil {
		return l.request(s), max(s.since, t.FactsSeq)
	}
	wanted := s.wanted(w, t)
	// A trial keeps the task's pod, and their number is limited: only nodes that are changed one by one get a trial.
	wanted.Trial = s.serves(w, t) || of(t).Facts.Primary || fsm.IsOneByOne(s.trusted())
	switch {
	case kind.Name == journal.ActionRestartLoadBalancer:
		wanted.CheckWith = wanted.Image
	case s.mustWrite(w, t) && fsm.IsOneByOne(s.trusted()): // each check takes a pod
		wanted.CheckWith = of(t).runs()
	}
	return journal.ActionRequested{Reason: s.reason(t, kind.Name, w), Input: wanted}, max(s.since, t.FactsSeq)
}

// Obsolete ends the action of a node that is not ready, so that it delays no other: EKCO changes the node when it is
// back. If the action has begun, it may be why the node is not ready, and continues.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	if l := listOf(t); l != nil {
		return l.obsolete(t, rec)
	}
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	switch b := of(t); {
	case err != nil, t.Newest() == 0:
		return ""
	case t.GoneSeq != 0:
		return "EKCO no longer manages the load balancer: " + b.Lost
	case b.Facts.NodeUID != input.NodeUID:
		return "the node was replaced by another of its name"
	case !b.Facts.Ready && !begun(t.Name, rec):
		return "the node is not ready; EKCO updates its load balancer when it is"
	}
	return ""
}

// Outdated implements [fsm.Machine]: an action that has not begun, or has stalled, ends if its input is out of date.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	if l := listOf(t); l != nil {
		return l.outdated(rec, w)
	}
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil || t.FactsSeq == 0 || begun(t.Name, rec) && (rec.Stalled == nil || !of(t).Facts.Ready) {
		return ""
	}
	wanted := sumOf(w).wanted(w, t)
	if len(wanted.Primaries) == 0 || sameConfig(input, wanted) && input.Image == wanted.Image {
		return ""
	}
	return "it is out of date; want: " + primariesAre(wanted.Primaries) + ", image " + wanted.Image
}

// sameConfig reports whether HAProxy has the same configuration by both inputs: the same primaries, and the same way in
// which EKCO writes the file.
func sameConfig(a, b journal.LoadBalancerInput) bool {
	return slices.Equal(a.Primaries, b.Primaries) && a.Layout == b.Layout
}
