package kotsadm

import (
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// world is a journal with nodes.
type world struct{ *fsmtest.Journal }

func newWorld(t *testing.T, nodes int) *world {
	w := &world{fsmtest.New(t, fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()).With(Machine, Policy{Enabled: true}), fsmnode.Capability(), Capability())}
	w.Pass(time.Minute)
	for i := range nodes {
		w.join(i)
	}
	return w
}

func node(i int) journal.Subject {
	return journal.NodeSubject(fmt.Sprintf("n%d", i), fmt.Sprintf("uid-n%d", i))
}

func (w *world) join(i int) {
	w.T.Helper()
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: node(i), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}}})
}

// rqlite is the database as KOTS installs it.
var rqlite = journal.Subject{Kind: journal.KotsadmDatabase.Kind, Name: journal.KotsadmDatabase.Name, UID: "uid-rqlite"}

func single(generation int64) journal.KotsadmFacts {
	return journal.KotsadmFacts{Generation: generation, Replicas: 1, Expect: "1", Image: "rqlite:8.1"}
}

func (w *world) observe(of journal.Subject, facts journal.KotsadmFacts) {
	w.T.Helper()
	w.Observe(Machine, of, facts)
}

// open returns the only open action about the subject after EKCO has decided, nil for
// none.
func (w *world) open(of journal.Subject) *journal.ActionRecord {
	w.T.Helper()
	w.Decide()
	return w.Open(of)
}

// wants expects that EKCO asks for the action, or does not.
func (w *world) wants(of journal.Subject, want bool) *journal.ActionRecord {
	w.T.Helper()
	rec := w.open(of)
	if (rec != nil) != want {
		w.T.Fatalf("EKCO asks for %+v, want %t; refused: %+v", rec, want, w.S.Refusals)
	}
	return rec
}

// set plays the action through: the database is of that generation then.
func (w *world) set(rec *journal.ActionRecord, generation int64, outcome journal.Outcome) {
	w.T.Helper()
	facts := single(generation)
	facts.Replicas, facts.Expect = 3, "3"
	w.Play(rec, journal.StepScaleKotsadm, facts)
	w.End(rec, outcome)
}

func (w *world) state(of journal.Subject) journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[fsm.Key(of)].State
}
