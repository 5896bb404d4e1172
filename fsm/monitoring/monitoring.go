package monitoring

import (
	"fmt"
	"strconv"

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
func Capability() fsm.Capability { return fsm.Capability{Machine: newMachine(), Kinds: kinds()} }

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionScaleMonitoring, Verb: "scale", Machine: Machine,
		// What was in vain rests by itself, and only as long as the number is the same: see again.
		Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused},
	}}
}

// object is what the machine keeps of one.
type object struct {
	fsm.Object[journal.MonitoringFacts]
	// Tried is how many replicas the last action was to set, whatever came of it.
	Tried int `json:"tried,omitempty"`
}

func of(t *fsm.Thing) *object { return t.Data.(*object) }

// machine implements [fsm.Machine] and [fsm.Pausable].
type machine struct{ fsm.Objects }

func newMachine() machine {
	return machine{fsm.Objects{Machine: Machine, Subjects: []journal.Subject{journal.MonitoringPrometheus, journal.MonitoringAlertmanager}}}
}

func (machine) New(*fsm.Thing) any { return &object{} }

func (m machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "Prometheus and Alertmanager",
		About:   "Two objects at most: Prometheus `monitoring/k8s` and Alertmanager `monitoring/prometheus-alertmanager`. The identity is the object's UID.",
		Initial: string(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "behind", From: fsm.Names(InStep, Scaling), To: string(Behind), When: "its replicas do not match the number of nodes", Tells: fsm.Tells("its replicas are not as many as the number of nodes allows")},
			{Event: "scale", From: fsm.Names(Behind, InStep), To: string(Scaling), When: "a scale-monitoring action is open", Tells: fsm.Tells("its replicas are being set")},
			{Event: "reached", From: fsm.Names(Behind, Scaling), To: string(InStep), When: "its replicas match the number of nodes", Tells: fsm.Tells("its replicas are as many as the number of nodes allows")},
			{Event: "removed", From: fsm.Names(InStep, Behind, Scaling), To: string(Removed), When: "the object is deleted", Tells: m.TellsLost},
			{Event: "back", From: fsm.Names(Removed), To: string(InStep), When: "the object exists again", Tells: fsm.Tells("it is back")},
		},
	}
}

// Ended keeps what the action set, also if it did not come to its end.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	if input, err := journal.InputOf[journal.MonitoringInput](rec.Request); err == nil {
		of(t).Tried = input.Replicas
	}
	of(t).Made(rec.Steps[journal.StepSetReplicas])
	return true
}

// Replicas returns how many replicas the Prometheus or the Alertmanager must have with so many nodes,
// ready or not.
func Replicas(of journal.Subject, nodes int) int {
	most := 2
	if of.Kind == journal.MonitoringAlertmanager.Kind {
		most = 3
	}
	return min(most, nodes)
}

// wanted returns how many replicas the nodes allow; zero as long as no node is known.
func wanted(t *fsm.Thing, w *fsm.World) (replicas, nodes int) {
	nodes, _ = w.Count("node")
	return Replicas(t.Subject, nodes), nodes
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	replicas, nodes := wanted(t, w)
	switch {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Scaling
	case nodes > 0 && of(t).Now().Replicas != replicas:
		return Behind
	}
	return InStep
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	replicas, nodes := wanted(t, w)
	has := of(t).Now().Replicas
	if t.GoneSeq != 0 || nodes == 0 || has == replicas || len(w.Open(t)) > 0 {
		return
	}
	due, may := t.RetryChange(journal.ActionScaleMonitoring, of(t).Tried != replicas, w.Policy)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionScaleMonitoring, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "replicas", Field: "the replicas of " + t.Kind + " " + t.Name, From: strconv.Itoa(has), To: strconv.Itoa(replicas),
	}})
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	replicas, nodes := wanted(t, w)
	return journal.ActionRequested{
		Reason: fmt.Sprintf("for %s it should have %s, and has %d", words.Count(nodes, "node"), words.Count(replicas, "replica"), of(t).Now().Replicas),
		Input:  journal.MonitoringInput{Replicas: replicas, Nodes: nodes},
	}, t.FactsSeq
}

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	input, err := journal.InputOf[journal.MonitoringInput](rec.Request)
	if err == nil && len(rec.Steps) == 0 && of(t).Now().Replicas == input.Replicas {
		return "it has " + words.Count(input.Replicas, "replica")
	}
	return ""
}
