package monitoring

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
	w := &world{fsmtest.New(t, fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()), fsmnode.Capability(), Capability())}
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

func (w *world) leave(i int) {
	w.T.Helper()
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: node(i), Payload: journal.NodeGone{Reason: "deleted"}})
}

// is gives a subject its UID.
func is(of journal.Subject) journal.Subject {
	of.UID = "uid-" + of.Kind
	return of
}

var (
	prometheus   = is(journal.MonitoringPrometheus)
	alertmanager = is(journal.MonitoringAlertmanager)
)

func (w *world) observe(of journal.Subject, generation int64, replicas int) {
	w.T.Helper()
	w.Observe(Machine, of, journal.MonitoringFacts{Generation: generation, Replicas: replicas})
}

// open returns the only open action about the subject after EKCO has decided, nil for
// none.
func (w *world) open(of journal.Subject) *journal.ActionRecord {
	w.T.Helper()
	w.Decide()
	return w.Open(of)
}

// wants expects EKCO to ask for so many replicas, zero for nothing.
func (w *world) wants(of journal.Subject, replicas int) *journal.ActionRecord {
	w.T.Helper()
	rec, got := w.open(of), 0
	if rec != nil {
		input, err := journal.InputOf[journal.MonitoringInput](rec.Request)
		if err != nil {
			w.T.Fatal(err)
		}
		got = input.Replicas
	}
	if got != replicas {
		w.T.Fatalf("%s: EKCO asks for %d replicas, want %d; refused: %+v", of.Name, got, replicas, w.S.Refusals)
	}
	return rec
}

// set plays the action through: it makes what it was asked for of the object, which is
// of that generation then.
func (w *world) set(rec *journal.ActionRecord, generation int64) {
	w.T.Helper()
	input, err := journal.InputOf[journal.MonitoringInput](rec.Request)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Play(rec, journal.StepSetReplicas, journal.MonitoringFacts{Generation: generation, Replicas: input.Replicas})
	w.End(rec, journal.OutcomeDone)
}

func (w *world) state(of journal.Subject) journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[fsm.Key(of)].State
}
