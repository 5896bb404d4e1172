package kotsadm

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// world is a journal in memory, folded and decided upon.
type world struct {
	t   *testing.T
	s   *fsm.State
	p   fsm.Policy
	now time.Time
}

func newWorld(t *testing.T, nodes int) *world {
	w := &world{
		t: t, s: fsm.NewState(fsmnode.Capability(), Capability()), now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		p: fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()).With(Machine, Policy{Enabled: true}),
	}
	w.write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "1"}})
	w.now = w.now.Add(time.Minute)
	for i := range nodes {
		w.join(i)
	}
	return w
}

func (w *world) write(drafts ...journal.Draft) {
	w.t.Helper()
	for _, draft := range drafts {
		body, version, err := draft.Encode()
		if err != nil {
			w.t.Fatal(err)
		}
		w.s.Apply(journal.Event{
			Seq: w.s.Seq + 1, Time: w.now, Type: draft.Type, Version: version, Subject: draft.Subject,
			Action: draft.Action, Cause: draft.Cause, Actor: draft.Actor, Payload: body,
		})
	}
	if len(w.s.Problems) > 0 {
		w.t.Fatalf("problems: %q", w.s.Problems)
	}
}

func node(i int) journal.Subject {
	return journal.NodeSubject(fmt.Sprintf("n%d", i), fmt.Sprintf("uid-n%d", i))
}

func (w *world) join(i int) {
	w.t.Helper()
	w.write(journal.Draft{Type: journal.TypeNodeObserved, Subject: node(i), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}}})
}

// rqlite is the database as KOTS installs it.
var rqlite = journal.Subject{Kind: journal.KotsadmDatabase.Kind, Name: journal.KotsadmDatabase.Name, UID: "uid-rqlite"}

func single(generation int64) journal.KotsadmFacts {
	return journal.KotsadmFacts{Generation: generation, Replicas: 1, Expect: "1", Image: "rqlite:8.1"}
}

func (w *world) observe(of journal.Subject, facts journal.KotsadmFacts) {
	w.t.Helper()
	encoded, err := json.Marshal(facts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(journal.Draft{Type: journal.TypeThingObserved, Subject: of, Payload: journal.ThingObserved{Machine: Machine, Facts: encoded}})
}

// open returns the only open action about the subject after EKCO has decided, nil for
// none.
func (w *world) open(of journal.Subject) *journal.ActionRecord {
	w.t.Helper()
	w.write(fsm.Decide(w.s, w.p, w.now).Events...)
	var found *journal.ActionRecord
	for _, rec := range w.s.Actions {
		if rec.Subject == of {
			if found != nil {
				w.t.Fatalf("both %s and %s are open", rec.ID, found.ID)
			}
			found = rec
		}
	}
	return found
}

// wants expects that EKCO asks for the action, or does not.
func (w *world) wants(of journal.Subject, want bool) *journal.ActionRecord {
	w.t.Helper()
	rec := w.open(of)
	if (rec != nil) != want {
		w.t.Fatalf("EKCO asks for %+v, want %t; refused: %+v", rec, want, w.s.Refusals)
	}
	return rec
}

// set plays the action through: the database is of that generation then.
func (w *world) set(rec *journal.ActionRecord, generation int64, outcome journal.Outcome) {
	w.t.Helper()
	facts := single(generation)
	facts.Replicas, facts.Expect = 3, "3"
	outputs, err := json.Marshal(facts)
	if err != nil {
		w.t.Fatal(err)
	}
	step := journal.PlannedStep{ID: journal.StepScaleKotsadm, Does: journal.StepScaleKotsadm}
	w.write(
		journal.Draft{Type: journal.TypeActionPlanned, Subject: rec.Subject, Action: rec.ID, Payload: journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{step}}}},
		journal.Draft{Type: journal.TypeStepStarted, Subject: rec.Subject, Action: rec.ID, Payload: journal.StepStarted{Step: step.ID, Attempt: 1}},
		journal.Draft{Type: journal.TypeStepDone, Subject: rec.Subject, Action: rec.ID, Payload: journal.StepDone{Step: step.ID, Attempt: 1, Outputs: outputs}},
	)
	w.end(rec, outcome)
}

func (w *world) end(rec *journal.ActionRecord, outcome journal.Outcome) {
	w.t.Helper()
	w.write(journal.Draft{Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Payload: journal.ActionEnded{Outcome: outcome}})
}

func (w *world) state(of journal.Subject) journal.State {
	w.t.Helper()
	w.write(fsm.Decide(w.s, w.p, w.now).Events...)
	return w.s.Things[fsm.Key(of)].State
}
