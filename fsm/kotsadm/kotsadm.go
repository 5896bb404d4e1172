package kotsadm

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "kotsadm"

// The states of the database.
const (
	Single  journal.State = "Single"
	Scaling journal.State = "Scaling"
	HA      journal.State = "HA"
	Removed journal.State = "Removed"
)

// Policy is the part of the configuration that decisions about the database depend on.
type Policy struct {
	// Enabled is the setting enable_ha_kotsadm.
	Enabled bool
}

func isEnabled(policy any) bool {
	p, _ := policy.(Policy)
	return p.Enabled
}

// Capability returns the capability for the database.
func Capability() fsm.Capability { return fsm.Capability{Machine: newMachine(), Kinds: kinds()} }

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionScaleKotsadm, Verb: "scale", Machine: Machine,
		Rules:   []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
		Domains: []string{journal.DomainStorage},
		SwitchedOff: func(p fsm.Policy) string {
			if isEnabled(p.Of[Machine]) {
				return ""
			}
			return "enable_ha_kotsadm is off"
		},
	}}
}

// database is the machine's data about the database.
type database struct {
	fsm.Object[journal.KotsadmFacts]
	// Changed is set if the last action made its change, even if the action then failed.
	Changed bool `json:"changed,omitempty"`
}

func of(t *fsm.Thing) *database { return t.Data.(*database) }

// machine implements [fsm.Machine] and [fsm.Pausable].
type machine struct{ fsm.Objects }

func newMachine() machine {
	return machine{fsm.Objects{Machine: Machine, Subjects: []journal.Subject{journal.KotsadmDatabase}}}
}

func (machine) New(*fsm.Thing) any { return &database{} }

func (m machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "kotsadm's database",
		About:   "StatefulSet `default/kotsadm-rqlite`. The identity is its UID.",
		Initial: string(Single), Normal: fsm.Names(Single, HA), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "scale", From: fsm.Names(Single, HA), To: string(Scaling), When: "a scale-kotsadm action is open", Report: fsm.ReportReason("EKCO scales it to three replicas")},
			{Event: "scaled", From: fsm.Names(Single, Scaling), To: string(HA), When: "its specification has three replicas", Report: fsm.ReportReason("its spec has three replicas")},
			{Event: "reset", From: fsm.Names(HA, Scaling), To: string(Single), When: "its specification has another number of replicas, or another number in -bootstrap-expect", Report: fsm.ReportReason("its spec has another number of replicas, or another number in -bootstrap-expect")},
			{Event: "removed", From: fsm.Names(Single, Scaling, HA), To: string(Removed), When: "the StatefulSet is deleted, or enable_ha_kotsadm is off", Report: m.ReportLost},
			{Event: "back", From: fsm.Names(Removed), To: string(Single), When: "the StatefulSet exists again, and enable_ha_kotsadm is on", Report: fsm.ReportReason("it is back")},
		},
	}
}

// Ended implements [fsm.Machine]. It stores the facts after the action's change, even if the action then failed.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	of(t).Changed = of(t).Made(rec.Steps[journal.StepScaleKotsadm])
	return true
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	switch {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Scaling
	case of(t).Now().Scaled():
		return HA
	}
	return Single
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	_, ready := w.Count("node")
	now := of(t).Now()
	if t.GoneSeq != 0 || ready < journal.KotsadmReplicas || now.Scaled() || len(w.Open(t)) > 0 || !isEnabled(w.PolicyOf(Machine)) {
		return
	}
	due, may := t.RetryChange(journal.ActionScaleKotsadm, of(t).Changed, w.Policy)
	if !may {
		return
	}
	wanted := now
	wanted.Replicas = journal.KotsadmReplicas
	if wanted.Expect != "" {
		wanted.Expect = fmt.Sprint(journal.KotsadmReplicas)
	}
	want(fsm.Want{Kind: journal.ActionScaleKotsadm, Due: due, Rank: t.Since, Change: &journal.Change{
		// The key has the image, because installing another version resets the replicas once, which is not a contest.
		Key: "replicas of " + now.Image, Field: "the replicas of " + t.Kind + " " + t.Name, From: now.Size(), To: wanted.Size(),
	}})
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	_, ready := w.Count("node")
	return journal.ActionRequested{Reason: fmt.Sprintf("%d nodes are ready, so it should have %d replicas, and has %s",
		ready, journal.KotsadmReplicas, of(t).Now().Size())}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. An action that has begun is not obsolete, because its own effect must not end it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	if len(rec.Steps) == 0 && of(t).Now().Scaled() {
		return fmt.Sprintf("it has %d replicas", journal.KotsadmReplicas)
	}
	return ""
}
