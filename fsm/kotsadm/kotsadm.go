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

// Policy is what the configuration says of the database.
type Policy struct {
	// Enabled is enable_ha_kotsadm.
	Enabled bool
}

func enabled(policy any) bool {
	p, _ := policy.(Policy)
	return p.Enabled
}

// Capability returns what EKCO can do about the database.
func Capability() fsm.Capability { return fsm.Capability{Machine: newMachine(), Kinds: kinds()} }

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionScaleKotsadm, Verb: "scale", Machine: Machine,
		Rules:   []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
		Domains: []string{journal.DomainStorage},
		SwitchedOff: func(p fsm.Policy) string {
			if enabled(p.Of[Machine]) {
				return ""
			}
			return "enable_ha_kotsadm is off"
		},
	}}
}

// database is what the machine keeps of it.
type database struct {
	fsm.Object[journal.KotsadmFacts]
	// Changed is set if the last action made its change, whatever came of it then.
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
		Initial: string(Single), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "scale", From: fsm.Names(Single, HA), To: string(Scaling), When: "a scale-kotsadm action is open", Tells: fsm.Tells("it is given three replicas")},
			{Event: "scaled", From: fsm.Names(Single, Scaling), To: string(HA), When: "its specification has three replicas", Tells: fsm.Tells("it is asked to have three replicas")},
			{Event: "reset", From: fsm.Names(HA, Scaling), To: string(Single), When: "its specification has another number of replicas, or another number in -bootstrap-expect", Tells: fsm.Tells("it is not asked to have three replicas")},
			{Event: "removed", From: fsm.Names(Single, Scaling, HA), To: string(Removed), When: "the StatefulSet is deleted, or enable_ha_kotsadm is off", Tells: m.TellsLost},
			{Event: "back", From: fsm.Names(Removed), To: string(Single), When: "the StatefulSet exists again, and enable_ha_kotsadm is on", Tells: fsm.Tells("it is back")},
		},
	}
}

// Ended keeps what the action set, also if it did not come to its end.
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
	if t.GoneSeq != 0 || ready < journal.KotsadmReplicas || now.Scaled() || len(w.Open(t)) > 0 || !enabled(w.PolicyOf(Machine)) {
		return
	}
	due, may := t.RetryChange(journal.ActionScaleKotsadm, of(t).Changed, w.Policy)
	if !may {
		return
	}
	shall := now
	shall.Replicas = journal.KotsadmReplicas
	if shall.Expect != "" {
		shall.Expect = fmt.Sprint(journal.KotsadmReplicas)
	}
	want(fsm.Want{Kind: journal.ActionScaleKotsadm, Due: due, Rank: t.Since, Change: &journal.Change{
		// A re-install of another version sets back the replicas once, and is no fight.
		Key: "replicas of " + now.Image, Field: "the replicas of " + t.Kind + " " + t.Name, From: now.Size(), To: shall.Size(),
	}})
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	_, ready := w.Count("node")
	return journal.ActionRequested{Reason: fmt.Sprintf("%d nodes are ready, so it should have %d replicas, and has %s",
		ready, journal.KotsadmReplicas, of(t).Now().Size())}, t.FactsSeq
}

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	if len(rec.Steps) == 0 && of(t).Now().Scaled() {
		return fmt.Sprintf("it has %d replicas", journal.KotsadmReplicas)
	}
	return ""
}
