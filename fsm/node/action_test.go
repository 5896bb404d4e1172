package node

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// purge is a world with an open, planned purge of w1.
func purge(t *testing.T) (w *world, id string) {
	w = due(t, "w1")
	w.decide()
	id = w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	return w, id
}

func TestTheRecordHoldsAllThatAnActionIsResumedFrom(t *testing.T) {
	w, id := purge(t)
	at := w.now
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Preflight: "P", Step: "look", Reason: "r"})
	if got := w.s.Actions[id].Status; got != fsm.Held {
		t.Fatalf("status: %s", got)
	}
	w.act(id, journal.TypeActionReleased, journal.ActionReleased{Preflight: "P", Step: "look"})
	w.startStep(id, "look")
	w.pass(time.Second)
	w.act(id, journal.TypeStepFailed, journal.StepFailed{Step: "look", Attempt: 1, Error: "no", NextTry: w.now.Add(time.Second)})
	failed := journal.StepRecord{Attempts: 1, Failures: 1, StartedAt: at, LastError: "no", NextTry: w.now.Add(time.Second)}
	if diff := cmp.Diff(failed, w.s.Actions[id].Steps["look"]); diff != "" {
		t.Fatal(diff)
	}
	w.pass(time.Second)
	w.startStep(id, "look")
	w.act(id, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 2, Outputs: json.RawMessage(`{"a":1}`)})
	done := w.now
	w.startStep(id, "delete-node")
	rec := w.s.Actions[id]
	want := map[string]journal.StepRecord{
		"look":        {Attempts: 2, StartedAt: at, DoneAt: done, Outputs: json.RawMessage(`{"a":1}`)},
		"delete-node": {Attempts: 1, StartedAt: done, Open: true},
	}
	if diff := cmp.Diff(want, rec.Steps); diff != "" {
		t.Error(diff)
	}
	if !rec.PastNoReturn || !rec.Planned || rec.Status != fsm.Running || len(rec.Holds) != 0 || rec.LastSeq != w.s.Seq || rec.RequestedBy != fsm.ActorOperator {
		t.Errorf("record: %+v", rec)
	}
	w.end(id, journal.OutcomeDone)
	if len(w.s.Actions) != 0 {
		t.Error("an ended action stays")
	}
}

func TestACancelThatComesTooLateIsVoid(t *testing.T) {
	w, id := purge(t)
	w.act(id, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "r"})
	w.startStep(id, "delete-node")
	if rec := w.s.Actions[id]; rec.Cancelling != nil || rec.Status != fsm.Running || !rec.PastNoReturn {
		t.Errorf("record: %+v", rec)
	}
	w.act(id, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "r"})
	if rec := w.s.Actions[id]; rec.Cancelling != nil {
		t.Error("an action past its point of no return is cancelled")
	}
}

func TestAnActionStaysHeldUntilItsLastHoldIsReleased(t *testing.T) {
	w, id := purge(t)
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Preflight: "P", Step: "look"})
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Preflight: "Q", Step: "delete-node"})
	w.act(id, journal.TypeActionReleased, journal.ActionReleased{Step: "look"})
	if got := w.s.Actions[id].Status; got != fsm.Held {
		t.Errorf("status: %s", got)
	}
	w.act(id, journal.TypeActionReleased, journal.ActionReleased{Step: "delete-node"})
	if got := w.s.Actions[id].Status; got != fsm.Running {
		t.Errorf("status: %s", got)
	}
}

func TestAPlanIsFixedOnce(t *testing.T) {
	w, id := purge(t)
	before := w.s.Actions[id].Plan
	w.act(id, journal.TypeActionPlanned, journal.ActionPlanned{})
	if diff := cmp.Diff(before, w.s.Actions[id].Plan); diff != "" || len(w.s.Problems) != 1 {
		t.Errorf("problems %q, plan changed:\n%s", w.s.Problems, diff)
	}
}

func TestAnEventFromTheFutureHoldsTheActionItBelongsTo(t *testing.T) {
	for name, e := range map[string]journal.Event{
		"unknown type":    {Type: "step.paused", Version: 1, Payload: json.RawMessage(`{}`)},
		"unknown version": {Type: journal.TypeStepDone, Version: 2, Payload: json.RawMessage(`{}`)},
		"broken payload":  {Type: journal.TypeStepDone, Version: 1, Payload: json.RawMessage(`{"step":7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := purge(t)
			e.Seq, e.Action = w.s.Seq+1, id
			w.s.Apply(e)
			rec := w.s.Actions[id]
			if rec.Unreadable == "" || rec.Status != fsm.Held {
				t.Fatalf("record: %+v", rec)
			}
			if _, err := fsm.Retry(w.s, id, "", person); !errors.Is(err, fsm.ErrRefused) {
				t.Errorf("retry: %v", err)
			}
			w.events = append(w.events, e)
			w.act(id, journal.TypeActionRetried, journal.ActionRetried{})
			if rec.Status != fsm.Held {
				t.Error("a retry releases an unreadable action")
			}
			w.wantRefused(ask("w1"), fsm.RuleUnreadable, "run the version that wrote them")
			w.observe("w1")
			w.wantDecided() // it may be past its point of no return
		})
	}
}

func TestARequestFromTheFutureIsSeenAndHeld(t *testing.T) {
	w := due(t, "w1")
	w.s.Apply(journal.Event{
		Seq: w.s.Seq + 1, Type: journal.TypeActionRequested, Version: 3, Action: "purge-w1-x",
		Subject: w.node("w1").Subject, Payload: json.RawMessage(`{"kind":"purge-node"}`),
	})
	if rec := w.s.Actions["purge-w1-x"]; rec == nil || rec.Status != fsm.Held || rec.Kind != journal.ActionPurgeNode {
		t.Fatalf("record: %+v", rec)
	}
	d := fsm.Decide(w.s, w.p.whole(), w.now)
	for _, e := range d.Events {
		if e.Type == journal.TypeActionRequested {
			t.Error("a second purge is requested")
		}
	}
}

func TestAnUnknownEventOfNoOpenActionIsCarriedAlong(t *testing.T) {
	w, id := purge(t)
	w.end(id, journal.OutcomeDone)
	before := w.s.Seq
	w.s.Apply(journal.Event{Seq: before + 1, Type: "action.praised", Version: 1, Action: id})
	w.s.Apply(journal.Event{Seq: before + 2, Type: "weather.changed", Version: 1})
	if len(w.s.Problems) > 0 || len(w.s.Actions) > 0 || w.s.Seq != before+2 {
		t.Errorf("problems %q, actions %v", w.s.Problems, w.s.Actions)
	}
}

func TestEventsAreFoldedOnce(t *testing.T) {
	w, _ := purge(t)
	before := snapshotText(t, w.s)
	for _, e := range w.events {
		w.s.Apply(e)
	}
	if diff := cmp.Diff(before, snapshotText(t, w.s)); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	w := newWorld(t)
	for range 50 {
		w.gone("nobody", "deleted")
	}
	if len(w.s.Problems) != 20 {
		t.Fatalf("got %d problems", len(w.s.Problems))
	}
	if last := w.s.Problems[19]; !strings.HasPrefix(last, "event 52 (node.gone of Node nobody)") {
		t.Errorf("the newest is %q", last)
	}
}

func TestEventsThatMakeNoSenseAreProblems(t *testing.T) {
	node, pod := journal.NodeSubject("n", ""), journal.PodSubject("d", "p", "u", "w1")
	for name, draft := range map[string]journal.Draft{
		"a node without uid":          {Type: journal.TypeNodeObserved, Subject: node, Payload: journal.NodeObserved{}},
		"a pod of no node":            {Type: journal.TypePodTerminating, Subject: pod, Payload: journal.PodTerminating{NodeUID: "x", DeletionTimestamp: epoch}},
		"a pod without deletion":      {Type: journal.TypePodTerminating, Subject: pod, Payload: journal.PodTerminating{NodeUID: uidOf("w1")}},
		"a transition of no node":     {Type: journal.TypeNodeTransitioned, Subject: node, Payload: journal.NodeTransitioned{}},
		"a request without action id": {Type: journal.TypeActionRequested, Subject: node, Payload: journal.ActionRequested{}},
		"a step of no action":         {Type: journal.TypeStepDone, Action: "a", Subject: node, Payload: journal.StepDone{}},
		"an adoption of nothing":      {Type: journal.TypeActionAdopted, Action: "a", Subject: node, Payload: journal.ActionAdopted{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster("w1")
			w.write(draft)
			if len(w.s.Problems) != 1 || len(w.s.Actions) != 0 || len(w.s.Things) != 4 || len(w.node("w1").Pods) != 0 {
				t.Errorf("problems %q, actions %v", w.s.Problems, w.s.Actions)
			}
		})
	}
}

func TestWhatOpenActionsReturnedIsNeverChangedByTheFold(t *testing.T) {
	w, id := purge(t)
	w.startStep(id, "look")
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "delete-node"})
	open := w.s.OpenActions()
	if len(open) != 1 {
		t.Fatalf("open is %+v", open)
	}
	handedOut := open[0]
	body, err := json.Marshal(handedOut)
	if err != nil {
		t.Fatal(err)
	}
	w.act(id, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
	w.act(id, journal.TypeActionReleased, journal.ActionReleased{Step: "delete-node"})
	after, err := json.Marshal(handedOut)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(body), string(after)); diff != "" {
		t.Error(diff)
	}
}

func TestKnownNodesAreCopies(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.terminating("w1", "a")
	known := Known(w.s)
	if diff := cmp.Diff([]string{"p1", "p2", "p3", "w1"}, []string{known[0].Name, known[1].Name, known[2].Name, known[3].Name}); diff != "" {
		t.Fatal(diff)
	}
	before := w.now
	w.pass(time.Hour)
	w.terminating("w1", "a")
	w.terminating("w1", "b")
	if pods := known[3].Pods; len(pods) != 1 || !pods[uidOf("a")].DeletionTimestamp.Equal(before) {
		t.Errorf("pods: %v", pods)
	}
}

func TestASnapshotOfAnotherFoldIsRefused(t *testing.T) {
	snapshot, err := fsm.NewState(Capability()).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other := snapshot
	other.Fold = "ekco-state/0"
	if _, err := fsm.LoadState(other, Capability()); !errors.Is(err, fsm.ErrOtherFold) {
		t.Errorf("another fold: %v", err)
	}
	other = snapshot
	other.Seq = 7
	if _, err := fsm.LoadState(other, Capability()); err == nil {
		t.Error("a snapshot of another event is read")
	}
	other = snapshot
	other.State = []byte("{")
	if _, err := fsm.LoadState(other, Capability()); err == nil || errors.Is(err, fsm.ErrOtherFold) {
		t.Errorf("a broken snapshot: %v", err)
	}
}

func TestASnapshotKeepsEveryField(t *testing.T) {
	w, id := purge(t)
	w.terminating("w1", "a")
	w.pass(time.Hour)
	w.decide()
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "look"})
	w.tell(journal.TypePauseSet, journal.ClusterSubject, journal.PauseSet{Reason: "r", Until: w.now})
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{Problem: "p"})
	w.gone("x1", "deleted")
	w.decide()
	snapshot, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := fsm.LoadState(snapshot, Capability())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.s, loaded, cmpopts.IgnoreUnexported(fsm.State{}, fsm.Thing{}), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestANullInASnapshotIsNoTrap(t *testing.T) {
	state := `{"state":{"seq":1,"actions":{"x":null},"pauses":null},"things":{"node":[null,{"subject":{"kind":"Node","name":"b","uid":"b","node":"b"},"state":"Healthy","data":{"pods":{"p":null}}},{"data":null}]}}`
	s, err := fsm.LoadState(journal.Snapshot{Seq: 1, Fold: fsm.FoldName + " node", State: []byte(state)}, Capability())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, s: s, p: policies{fsm.DefaultPolicy(), DefaultPolicy()}, now: epoch, events: make([]journal.Event, 1)}
	w.observeUID("b", "b", unreachableSince(epoch))
	w.tell(journal.TypePauseSet, journal.ClusterSubject, journal.PauseSet{})
	w.pass(time.Hour)
	w.wantDecided("node.transitioned b: Healthy to Unknown")
}

func TestTheStatusOfAnAdoptedActionFollowsFromItsRecord(t *testing.T) {
	for want, rec := range map[journal.ActionStatus]journal.ActionRecord{
		fsm.Requested:  {},
		fsm.Running:    {Planned: true},
		fsm.Held:       {Planned: true, Holds: map[string]journal.ActionHeld{"": {}}},
		fsm.Stalled:    {Planned: true, Stalled: &journal.ActionStalled{}},
		fsm.Cancelling: {Planned: true, Stalled: &journal.ActionStalled{}, Cancelling: &journal.ActionCancelling{}},
	} {
		w := newWorld(t)
		w.cluster("w1")
		rec.ID, rec.Kind, rec.Subject = "x", journal.ActionPurgeNode, w.node("w1").Subject
		adopt := journal.Draft{Type: journal.TypeActionAdopted, Action: "x", Subject: rec.Subject, Payload: journal.ActionAdopted{Record: rec}}
		w.write(adopt)
		if got := w.s.Actions["x"].Status; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		w.write(adopt)
		if len(w.s.Problems) != 1 {
			t.Error("an open action is adopted again")
		}
	}
}

func TestAnActionIDIsNewAmongTheOpenOnes(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	id := w.s.ActionID(w.s.Kind(journal.ActionPurgeNode), w.node("w1").Subject)
	w.s.Actions[id] = &journal.ActionRecord{ID: id}
	if got, want := w.s.ActionID(w.s.Kind(journal.ActionPurgeNode), w.node("w1").Subject), id+"-2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnAdoptedActionThatCouldNotBeTakenBackIsStalled(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	rec := journal.ActionRecord{
		ID: "x", Kind: journal.ActionPurgeNode, Subject: w.node("w1").Subject, Planned: true,
		Plan: journal.Plan{
			Steps: []journal.PlannedStep{{ID: "unlist"}},
			Undo:  []journal.PlannedStep{{ID: "list", Undoes: "unlist"}},
		},
		Steps:      map[string]journal.StepRecord{"unlist": {Attempts: 1, StartedAt: epoch, DoneAt: epoch}},
		Cancelling: &journal.ActionCancelling{}, Stalled: &journal.ActionStalled{Step: "list"},
	}
	w.write(journal.Draft{Type: journal.TypeActionAdopted, Action: "x", Subject: rec.Subject, Payload: journal.ActionAdopted{Record: rec}})
	if got := w.s.Actions["x"].Status; got != fsm.Stalled {
		t.Errorf("it is %s, want %s", got, fsm.Stalled)
	}
}

// The journal lost its newest events, and its mirror knows them.
func TestAnOpenActionGoesOnAsTheMirrorOfTheSameJournalHasIt(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	further := *w.s.Actions[id]
	further.PastNoReturn = true
	w.act(id, journal.TypeActionAdopted, journal.ActionAdopted{Record: further, JournalID: w.s.Journal.ID})
	if !w.s.Actions[id].PastNoReturn || len(w.s.Problems) > 0 {
		t.Errorf("past its point of no return: %v; problems: %q", w.s.Actions[id].PastNoReturn, w.s.Problems)
	}
}
