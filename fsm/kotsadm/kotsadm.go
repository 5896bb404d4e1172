package kotsadm

import (
	"encoding/json"
	"fmt"
	"time"

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
func Capability() fsm.Capability { return fsm.Capability{Machine: machine{}, Kinds: kinds()} }

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
	journal.KotsadmFacts
	// Set is what EKCO made of it last. As long as what was observed is older, it holds.
	Set journal.KotsadmFacts `json:"set,omitzero"`
	// Made is set if the last action made its change, whatever came of it then.
	Made bool `json:"made,omitempty"`
}

func of(t *fsm.Thing) *database { return t.Data.(*database) }

// now returns what is asked of it, as far as is known.
func (d *database) now() journal.KotsadmFacts {
	if d.Generation < d.Set.Generation {
		return d.Set
	}
	return d.KotsadmFacts
}

// machine implements [fsm.Machine], [fsm.Observing], [fsm.ActionFolder] and
// [fsm.Pausable].
type machine struct{}

func (machine) Name() string       { return Machine }
func (machine) New(*fsm.Thing) any { return &database{} }

func (machine) Table() fsm.Table {
	tells := func(reason string) func(*fsm.Thing, journal.State, time.Time) fsm.Telling {
		return func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Telling {
			return fsm.Telling{Reason: reason, Cause: t.Newest()}
		}
	}
	return fsm.Table{
		Name: Machine, Title: "kotsadm's database",
		About:   "StatefulSet `default/kotsadm-rqlite`. The identity is its UID.",
		Initial: string(Single), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "scale", From: fsm.Names(Single, HA), To: string(Scaling), When: "a scale-kotsadm action is open", Tells: tells("it is given three replicas")},
			{Event: "scaled", From: fsm.Names(Single, Scaling), To: string(HA), When: "it is asked to have three replicas", Tells: tells("it is asked to have three replicas")},
			{Event: "reset", From: fsm.Names(HA, Scaling), To: string(Single), When: "it is asked to have another number of replicas, or rqlite to expect another", Tells: tells("it is not asked to have three replicas")},
			{Event: "removed", From: fsm.Names(Single, Scaling, HA), To: string(Removed), When: "there is no such StatefulSet any more", Tells: tells("it was removed")},
			{Event: "back", From: fsm.Names(Removed), To: string(Single), When: "there is such a StatefulSet again", Tells: tells("it is back")},
		},
	}
}

// Fold has nothing to fold: there are no event types of its own.
func (machine) Fold(*fsm.State, journal.Event, journal.Payload) bool { return false }

func (machine) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	now := journal.KotsadmFacts{UID: t.UID}
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of %s: %w", t.Name, err)
	}
	of(t).KotsadmFacts = now
	return nil
}

func (machine) Gone(*fsm.Thing, journal.Event, string) {}

func (machine) Opened(*fsm.State, *fsm.Thing, *journal.ActionRecord) {}

// Ended keeps what the action set, also if it did not come to its end.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	var set journal.KotsadmFacts
	outputs := rec.Steps[journal.StepScaleKotsadm].Outputs
	if of(t).Made = len(outputs) > 0 && json.Unmarshal(outputs, &set) == nil; of(t).Made {
		of(t).Set = set
	}
	return true
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	switch {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Scaling
	case of(t).now().Scaled():
		return HA
	}
	return Single
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	_, ready := w.Count("node")
	now := of(t).now()
	if t.GoneSeq != 0 || ready < journal.KotsadmReplicas || now.Scaled() || len(w.Open(t)) > 0 || !enabled(w.PolicyOf(Machine)) {
		return
	}
	due, may := again(t, w.Policy)
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

// rest is how long EKCO lets what was ended early be, if nothing new is seen of it.
const rest = 10 * time.Minute

// again returns when EKCO may ask for the action, and whether it may. What the last one
// set is known, so that it need not be seen first.
func again(t *fsm.Thing, p fsm.Policy) (due time.Time, may bool) {
	if last := t.Last[journal.ActionScaleKotsadm]; last == nil || last.Outcome == journal.OutcomeDone || of(t).Made {
		return time.Time{}, true
	}
	return t.Again(journal.ActionScaleKotsadm, p, rest)
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	_, ready := w.Count("node")
	return journal.ActionRequested{Reason: fmt.Sprintf("%d nodes are ready, so it shall have %d replicas, and has %s",
		ready, journal.KotsadmReplicas, of(t).now().Size())}, t.FactsSeq
}

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	if len(rec.Steps) == 0 && of(t).now().Scaled() {
		return fmt.Sprintf("it has %d replicas", journal.KotsadmReplicas)
	}
	return ""
}

// Known returns the facts of the database, as far as the journal knows it, by its name.
func Known(s *fsm.State) map[string]journal.KotsadmFacts {
	known := map[string]journal.KotsadmFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.GoneSeq == 0 {
			facts := of(t).KotsadmFacts
			facts.UID = t.UID
			known[t.Name] = facts
		}
	}
	return known
}
