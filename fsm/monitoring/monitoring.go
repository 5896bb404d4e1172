package monitoring

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Machine is the name of the machine.
const Machine = "monitoring"

// The states of a Prometheus or an Alertmanager.
const (
	InStep  journal.State = "InStep"
	Behind  journal.State = "Behind"
	Scaling journal.State = "Scaling"
	Removed journal.State = "Removed"
)

// Capability returns what EKCO can do about them.
func Capability() fsm.Capability { return fsm.Capability{Machine: machine{}, Kinds: kinds()} }

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionScaleMonitoring, Verb: "scale", Machine: Machine,
		Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
	}}
}

// object is what the machine keeps of one.
type object struct {
	journal.MonitoringFacts
	// Set is what EKCO made of it last. As long as what was observed is older, it holds.
	Set journal.MonitoringFacts `json:"set,omitzero"`
	// Tried is how many replicas the last action was to set, whatever came of it.
	Tried int `json:"tried,omitempty"`
}

func of(t *fsm.Thing) *object { return t.Data.(*object) }

// replicas returns how many it has, as far as is known.
func (o *object) replicas() int {
	if o.Generation < o.Set.Generation {
		return o.Set.Replicas
	}
	return o.Replicas
}

// machine implements [fsm.Machine], [fsm.Observing], [fsm.ActionFolder] and
// [fsm.Pausable].
type machine struct{}

func (machine) Name() string       { return Machine }
func (machine) New(*fsm.Thing) any { return &object{} }

func (machine) Table() fsm.Table {
	tells := func(reason string) func(*fsm.Thing, journal.State, time.Time) fsm.Telling {
		return func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Telling {
			return fsm.Telling{Reason: reason, Cause: t.Newest()}
		}
	}
	return fsm.Table{
		Name: Machine, Title: "Prometheus and Alertmanager",
		About:   "Two objects at most: Prometheus `monitoring/k8s` and Alertmanager `monitoring/prometheus-alertmanager`. The identity is the object's UID.",
		Initial: string(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "behind", From: fsm.Names(InStep, Scaling), To: string(Behind), When: "its replicas are not as many as the number of nodes allows", Tells: tells("its replicas are not as many as the number of nodes allows")},
			{Event: "scale", From: fsm.Names(Behind, InStep), To: string(Scaling), When: "a scale-monitoring action is open", Tells: tells("its replicas are being set")},
			{Event: "reached", From: fsm.Names(Behind, Scaling), To: string(InStep), When: "its replicas are as many as the number of nodes allows", Tells: tells("its replicas are as many as the number of nodes allows")},
			{Event: "removed", From: fsm.Names(InStep, Behind, Scaling), To: string(Removed), When: "there is no such object any more", Tells: tells("it was removed")},
			{Event: "back", From: fsm.Names(Removed), To: string(InStep), When: "there is such an object again", Tells: tells("it is back")},
		},
	}
}

// Fold has nothing to fold: there are no event types of its own.
func (machine) Fold(*fsm.State, journal.Event, journal.Payload) bool { return false }

func (machine) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	now := journal.MonitoringFacts{UID: t.UID}
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of %s: %w", t.Name, err)
	}
	of(t).MonitoringFacts = now
	return nil
}

func (machine) Gone(*fsm.Thing, journal.Event, string) {}

func (machine) Opened(*fsm.State, *fsm.Thing, *journal.ActionRecord) {}

// Ended keeps what the action set, also if it did not come to its end.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	if input, err := journal.InputOf[journal.MonitoringInput](rec.Request); err == nil {
		of(t).Tried = input.Replicas
	}
	var set journal.MonitoringFacts
	if outputs := rec.Steps[journal.StepSetReplicas].Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &set) == nil {
		of(t).Set = set
	}
	return true
}

// wanted returns how many replicas the nodes allow; zero as long as no node is known.
func wanted(t *fsm.Thing, w *fsm.World) (replicas, nodes int) {
	nodes, _ = w.Count("node")
	most := 2
	if t.Kind == journal.MonitoringAlertmanager.Kind {
		most = 3
	}
	return min(most, nodes), nodes
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	replicas, nodes := wanted(t, w)
	switch {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Scaling
	case nodes > 0 && of(t).replicas() != replicas:
		return Behind
	}
	return InStep
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	replicas, nodes := wanted(t, w)
	has := of(t).replicas()
	if t.GoneSeq != 0 || nodes == 0 || has == replicas || len(w.Open(t)) > 0 {
		return
	}
	due, may := again(t, replicas, w.Policy)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionScaleMonitoring, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "replicas", Field: "the replicas of " + t.Kind + " " + t.Name, From: strconv.Itoa(has), To: strconv.Itoa(replicas),
	}})
}

// rest is how long EKCO lets what was ended early be, if nothing new is seen of it.
const rest = 10 * time.Minute

// again returns when EKCO may ask for so many replicas, and whether it may. What the last
// action set is known, so that it need not be seen first.
func again(t *fsm.Thing, replicas int, p fsm.Policy) (due time.Time, may bool) {
	last := t.Last[journal.ActionScaleMonitoring]
	if last == nil || last.Outcome == journal.OutcomeDone || of(t).Tried != replicas {
		return time.Time{}, true
	}
	return t.Again(journal.ActionScaleMonitoring, p, rest)
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	replicas, nodes := wanted(t, w)
	return journal.ActionRequested{
		Reason: fmt.Sprintf("for %s it shall have %s, and has %d", words.Count(nodes, "node"), words.Count(replicas, "replica"), of(t).replicas()),
		Input:  journal.MonitoringInput{Replicas: replicas, Nodes: nodes},
	}, t.FactsSeq
}

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	input, err := journal.InputOf[journal.MonitoringInput](rec.Request)
	if err == nil && len(rec.Steps) == 0 && of(t).replicas() == input.Replicas {
		return "it has " + words.Count(input.Replicas, "replica")
	}
	return ""
}

// Known returns the facts of what exists, as far as the journal knows, by name.
func Known(s *fsm.State) map[string]journal.MonitoringFacts {
	known := map[string]journal.MonitoringFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.GoneSeq == 0 {
			facts := of(t).MonitoringFacts
			facts.UID = t.UID
			known[t.Name] = facts
		}
	}
	return known
}
