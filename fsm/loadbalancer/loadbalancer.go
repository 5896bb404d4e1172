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

// Policy has the settings, and the versions of the files that this version of EKCO writes.
type Policy struct {
	// Enabled is the setting enable_internal_load_balancer. Image is internal_load_balancer_haproxy_image.
	Enabled bool
	Image   string
	// Version is the version of the manifest file. Layout identifies the format of the configuration file.
	Version, Layout string
	// TCPVersion is used instead of Version if API servers refuse anonymous requests.
	TCPVersion string
}

func policyOf(p fsm.Policy) Policy {
	policy, _ := p.Of[Machine].(Policy)
	return policy
}

// balancer is the machine's data about a load balancer, or about the ConfigMap.
type balancer struct {
	Facts journal.LoadBalancerFacts `json:"facts"`
	// WasReady is set once the node was ready. HAProxy does not forward to an API server on the node before that.
	WasReady bool `json:"was_ready,omitempty"`
	// At is the address of the node's API server in HAProxy's configuration. It stays if the Node loses its address.
	At string `json:"at,omitempty"`
	// Former is the address that At had before it first changed; "" if At never changed, or has that address again.
	Former string `json:"former,omitempty"`
	// WasPrimary is set once the node was a primary, and stays set.
	WasPrimary bool `json:"was_primary,omitempty"`
	// RefusesAnonymous is set once an API server has refused an anonymous request through this load balancer.
	RefusesAnonymous bool `json:"refuses_anonymous,omitempty"`
	// Proved is the result of the last verification of HAProxy; nil if it is unknown with which files HAProxy runs.
	Proved *verification `json:"proved,omitempty"`
	// Asked is the event that requested the last action on the load balancer.
	Asked uint64 `json:"asked,omitempty"`
	// Tried is the input of the last action that ended, whatever its outcome.
	Tried *journal.LoadBalancerInput `json:"tried,omitempty"`
	// Runs is the image with which HAProxy was last seen running.
	Runs string `json:"runs,omitempty"`
	// ChangedAt is the end of the last action that changed the load balancer, or may have changed it.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Worse is set if the node stopped being ready soon after a change of its load balancer. It stays set until the
	// node is ready and an action has verified the load balancer.
	Worse bool `json:"worse,omitempty"`
	// Lost says why EKCO no longer manages the load balancer, or is "".
	Lost string `json:"lost,omitempty"`
	// List is set only in the thing that stands for the ConfigMap. That thing uses no other field.
	List *list `json:"list,omitempty"`
}

// verification is the result of an action that verified a load balancer.
type verification struct {
	Input journal.LoadBalancerInput `json:"input"`
	// Image and Version are the values in the manifest; Image is empty if there is no manifest.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Started is when the verified HAProxy was started; zero if HAProxy did not run.
	Started time.Time `json:"started,omitzero"`
	// Asked is the event that requested the action. Seq is the event that ended it.
	Asked uint64 `json:"asked,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
}

// of returns the data about a load balancer. It returns nil for the ConfigMap and for another machine's thing.
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

// Known returns the facts about the load balancers that exist according to the journal, by name.
func Known(s *fsm.State) map[string]journal.LoadBalancerFacts {
	known := map[string]journal.LoadBalancerFacts{}
	for _, t := range s.Things {
		if b := of(t); b != nil && t.FactsSeq != 0 && t.GoneSeq == 0 {
			known[t.Name] = b.Facts
		}
	}
	return known
}

// Backends returns the present and former addresses at which HAProxy reaches each API server, the oldest first, by the
// name of the API server's node.
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

// Observed implements [fsm.Machine]. If another node has the name now, it forgets everything about the former node.
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

// backendOf returns the address at which HAProxy must reach a node's API server. at is the present address, or "". If
// EKCO did not ask the API server, backendOf returns the Node's address. Otherwise it keeps at, unless API servers
// answer only at other addresses: then it returns one of these, if possible the Node's address.
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

// runs returns the image of the HAProxy on the node, or "" if unknown. Earlier versions of EKCO did not set Runs, so it
// also uses the last verification.
func (b *balancer) runs() string {
	if b.Runs == "" && b.Proved != nil {
		return b.Proved.Image
	}
	return b.Runs
}

// apiServerAnswers reports whether the node's API server answers at the address At, or EKCO did not ask it.
func (b *balancer) apiServerAnswers() bool {
	return !b.Facts.Asked || slices.Contains(b.Facts.Answers, b.At)
}

// Gone implements [fsm.Machine]. It forgets the verification, because EKCO does not see later changes on the node.
func (machine) Gone(t *fsm.Thing, _ journal.Event, reason string) {
	if l := listOf(t); l != nil {
		l.Lost = reason
		return
	}
	of(t).Lost, of(t).Proved, of(t).Worse = reason, nil, false
}

// Adopt implements [fsm.Adopter]. The thing has no facts until an observer reports them.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject.Name == "" || subject.Kind != journal.KindLoadBalancer && subject.Kind != journal.KindLoadBalancerList {
		return false
	}
	s.Add(Machine, subject, Behind, e.Time)
	return true
}

func (machine) Opened(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	s.Changed(Machine)
	if l := listOf(t); l != nil {
		l.opened(rec)
		return
	}
	of(t).Asked = s.Seq
}

// Ended implements [fsm.Machine]. An action that is done has verified the load balancer. Any other action may have
// changed it, so the last verification no longer counts.
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
		b.Worse = false // because the rule's reason advises "ekco cancel"
	}
	switch {
	case input.NodeUID != b.Facts.NodeUID && t.FactsSeq != 0:
	case ended.Outcome == journal.OutcomeDone && left:
		// If there were several attempts, the last one does not report what an earlier one wrote.
		if on.Config || on.Manifest || rec.Steps[journal.StepWriteLoadBalancer+" "+t.Name].Attempts > 1 {
			b.ChangedAt = s.Time
		}
		b.Worse = !b.Facts.Ready && (b.Worse || b.ChangedAt.Equal(s.Time))
		b.Runs = on.Image
		b.Proved = &verification{Input: input, Image: on.Image, Version: on.Version, Started: startTime(rec), Asked: b.Asked, Seq: s.Seq}
	case hasBegun(t.Name, rec) && ended.Outcome != journal.OutcomeDryRun:
		b.Proved, b.ChangedAt = nil, s.Time
	}
	return true
}

func (machine) VisitAges(t *fsm.Thing, visit func(*time.Time)) {
	if b := of(t); b != nil {
		visit(&b.ChangedAt)
	}
}

// onNode returns the result of the program that the action ran on the node, and whether there is one.
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

// startTime returns when the HAProxy that the action verified was started, or zero.
func startTime(rec *journal.ActionRecord) time.Time {
	var runs journal.LoadBalancerRuns
	if outputs := rec.Steps[journal.StepReloadLoadBalancer].Outputs; len(outputs) == 0 || json.Unmarshal(outputs, &runs) != nil {
		return time.Time{}
	}
	return runs.Started
}

// refusesAnonymous reports whether the API server that answered the action's request refuses anonymous requests.
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
	case l != nil && l.hasContent(s.wantedList), l == nil && s.isUpToDate(w, t):
		return InStep
	}
	return Behind
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	s := sumOf(w)
	if l := listOf(t); l != nil {
		return l.request(s), max(s.since, t.FactsSeq)
	}
	wanted := s.wantedState(w, t)
	// A trial keeps the task's pod, and the number of pods is limited. So only nodes with the wanted configuration,
	// primaries, and nodes that are changed one by one get a trial.
	wanted.Trial = s.servesWanted(w, t) || of(t).Facts.Primary || fsm.IsOneByOne(s.countVerified())
	switch {
	case kind.Name == journal.ActionRestartLoadBalancer:
		wanted.CheckWith = wanted.Image
	case s.mustWrite(w, t) && fsm.IsOneByOne(s.countVerified()): // each check takes a pod
		wanted.CheckWith = of(t).runs()
	}
	return journal.ActionRequested{Reason: s.requestReason(t, kind.Name, w), Input: wanted}, max(s.since, t.FactsSeq)
}

// Obsolete implements [fsm.Machine]. An action that has not begun is obsolete while its node is not ready, so that it
// does not delay other nodes. EKCO requests another one when the node is ready again. An action that has begun
// continues, because it may be the reason why the node is not ready.
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
	case !b.Facts.Ready && !hasBegun(t.Name, rec):
		return "the node is not ready; EKCO updates its load balancer when it is"
	}
	return ""
}

// Outdated implements [fsm.Machine]. An action that has not begun, or has stalled on a ready node, ends if its input is
// out of date.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	if l := listOf(t); l != nil {
		return l.outdated(rec, w)
	}
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil || t.FactsSeq == 0 || hasBegun(t.Name, rec) && (rec.Stalled == nil || !of(t).Facts.Ready) {
		return ""
	}
	wanted := sumOf(w).wantedState(w, t)
	if len(wanted.Primaries) == 0 || sameConfig(input, wanted) && input.Image == wanted.Image {
		return ""
	}
	return "it is out of date; want: " + primariesAre(wanted.Primaries) + ", image " + wanted.Image
}

// sameConfig reports whether both inputs result in the same configuration file: they have the same primaries and
// layout.
func sameConfig(a, b journal.LoadBalancerInput) bool {
	return slices.Equal(a.Primaries, b.Primaries) && a.Layout == b.Layout
}
