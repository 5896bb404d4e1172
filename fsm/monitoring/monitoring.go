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

// Capability returns the capability for Prometheus and Alertmanager.
func Capability() fsm.Capability { return fsm.Capability{Machine: newMachine(), Kinds: kinds()} }

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionScaleMonitoring, Verb: "scale", Machine: Machine,
		// RuleCooldown is not necessary, because Wants delays another attempt with the same number of replicas.
		Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused},
	}}
}

// object is the machine's data about a Prometheus or an Alertmanager.
type object struct {
	fsm.Object[journal.MonitoringFacts]
	// Tried is the number of replicas in the input of the last action, even if the action failed.
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
		Initial: string(InStep), Normal: fsm.Names(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "behind", From: fsm.Names(InStep, Scaling), To: string(Behind), When: "its replicas do not match the number of nodes", Report: fsm.ReportReason("its number of replicas does not fit the number of nodes")},
			{Event: "scale", From: fsm.Names(Behind, InStep), To: string(Scaling), When: "a scale-monitoring action is open", Report: fsm.ReportReason("its replicas are being set")},
			{Event: "reached", From: fsm.Names(Behind, Scaling), To: string(InStep), When: "its replicas match the number of nodes", Report: fsm.ReportReason("its number of replicas fits the number of nodes")},
			{Event: "removed", From: fsm.Names(InStep, Behind, Scaling), To: string(Removed), When: "the object is deleted", Report: m.ReportLost},
			{Event: "back", From: fsm.Names(Removed), To: string(InStep), When: "the object exists again", Report: fsm.ReportReason("it is back")},
		},
	}
}

// Ended implements [fsm.Machine]. It stores the number of replicas that the action tried to set, even if the action
// failed.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	if input, err := journal.InputOf[journal.MonitoringInput](rec.Request); err == nil {
		of(t).Tried = input.Replicas
	}
	of(t).Made(rec.Steps[journal.StepSetReplicas])
	return true
}

// Replicas returns how many replicas the Prometheus or the Alertmanager must have if the cluster has this number of
// nodes, ready or not.
func Replicas(of journal.Subject, nodes int) int {
	limit := 2
	if of.Kind == journal.MonitoringAlertmanager.Kind {
		limit = 3
	}
	return min(limit, nodes)
}

// wantedReplicas returns how many replicas the object must have, and the number of nodes. Both are zero if EKCO knows
// no node.
func wantedReplicas(t *fsm.Thing, w *fsm.World) (replicas, nodes int) {
	nodes, _ = w.Count("node")
	return Replicas(t.Subject, nodes), nodes
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	replicas, nodes := wantedReplicas(t, w)
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
	replicas, nodes := wantedReplicas(t, w)
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
	replicas, nodes := wantedReplicas(t, w)
	return journal.ActionRequested{
		Reason: fmt.Sprintf("for %s it should have %s, and has %d", words.Count(nodes, "node"), words.Count(replicas, "replica"), of(t).Now().Replicas),
		Input:  journal.MonitoringInput{Replicas: replicas, Nodes: nodes},
	}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. An action that has begun is not obsolete, because its own effect must not end it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	input, err := journal.InputOf[journal.MonitoringInput](rec.Request)
	if err == nil && len(rec.Steps) == 0 && of(t).Now().Replicas == input.Replicas {
		return "it has " + words.Count(input.Replicas, "replica")
	}
	return ""
}
