package minio

import (
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// world is a journal in memory.
type world struct{ *fsmtest.Journal }

func newWorld(t *testing.T, nodes int) *world {
	w := &world{fsmtest.New(t, fsmnode.DefaultPolicy().In(fsm.DefaultPolicy()).With(Machine, Policy{Migrates: true}), fsmnode.Capability(), WithMigration())}
	w.Pass(time.Minute)
	for i := range nodes {
		w.join(i)
	}
	return w
}

func nodeOf(i int) journal.Subject {
	return journal.NodeSubject(fmt.Sprintf("n%d", i), fmt.Sprintf("uid-n%d", i))
}

func (w *world) join(i int) {
	w.T.Helper()
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: nodeOf(i), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}}})
}

func (w *world) lose(i int) {
	w.T.Helper()
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: nodeOf(i), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{
		Role: journal.RoleWorker, Taints: []journal.Taint{{Key: journal.TaintUnreachable, TimeAdded: w.Now}},
	}}})
}

// minio is MinIO as kURL installs it.
var minio = journal.MinioSubject("minio", "uid-ha")

func installed(generation int64, replicas int) journal.MinioFacts {
	return journal.MinioFacts{Generation: generation, Replicas: replicas, Desired: 6, Deployment: "uid-single", Service: journal.MinioServiceSingle}
}

func (w *world) observe(facts journal.MinioFacts) {
	w.T.Helper()
	w.Observe(Machine, minio, facts)
}

// open returns the only open action of the kind after EKCO has decided, nil for none.
func (w *world) open(kind journal.ActionKind) *journal.ActionRecord {
	w.T.Helper()
	w.Decide()
	var found *journal.ActionRecord
	for _, rec := range w.S.Actions {
		if rec.Kind == kind && rec.Stalled == nil {
			if found != nil {
				w.T.Fatalf("both %s and %s are open", rec.ID, found.ID)
			}
			found = rec
		}
	}
	return found
}

// wants expects that EKCO asks for an action of the kind, or does not.
func (w *world) wants(kind journal.ActionKind, want bool) *journal.ActionRecord {
	w.T.Helper()
	rec := w.open(kind)
	if (rec != nil) != want {
		w.T.Fatalf("EKCO asks for %+v, want %t; refused: %+v", rec, want, w.S.Refusals)
	}
	return rec
}

// made plays the step through that makes the change.
func (w *world) made(rec *journal.ActionRecord, outputs any) {
	w.T.Helper()
	w.Play(rec, changeSteps[rec.Kind], outputs)
}

// act writes what a worker does about the action.
func (w *world) act(rec *journal.ActionRecord, payloads ...journal.Payload) {
	w.T.Helper()
	for _, payload := range payloads {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator, Payload: payload})
	}
}

func (w *world) end(rec *journal.ActionRecord, outcome journal.Outcome) {
	w.T.Helper()
	w.End(rec, outcome)
}

// retain folds again what retention keeps, and starts.
func (w *world) retain() {
	w.T.Helper()
	w.S = fsmtest.Retained(w.Events, w.S, fsmnode.Capability(), WithMigration())
	w.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}})
	w.Pass(time.Minute)
}

func (w *world) state() journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[fsm.Key(minio)].State
}
