package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const person = "cli:root@h"

func TestAPauseIsEndedByResume(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	for node, key := range map[string]string{"": "", "w1": "node/w1", "node/w1": "node/w1", "Node/w1": "node/w1"} {
		drafts, err := fsm.Pause(w.s, w.now, node, "why", time.Hour, person)
		if err != nil {
			t.Fatal(err)
		}
		w.write(drafts...)
		want := fsm.PauseState{Reason: "why", By: person, At: w.now, Until: w.now.Add(time.Hour), Seq: w.s.Seq}
		if diff := cmp.Diff(want, w.s.Pauses[key]); diff != "" {
			t.Error(diff)
		}
		drafts, err = fsm.Resume(w.s, node, "over", person)
		if err != nil {
			t.Fatal(err)
		}
		w.write(drafts...)
		if len(w.s.Pauses) != 0 {
			t.Errorf("pauses: %v", w.s.Pauses)
		}
	}
}

func TestAPauseOfANodeThatIsForgottenCanBeEnded(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.tell(journal.TypePauseSet, journal.NodeSubject("w99", "uid-w99"), journal.PauseSet{Reason: "why"})
	drafts, err := fsm.Resume(w.s, "w99", "over", person)
	if err != nil {
		t.Fatal(err)
	}
	w.write(drafts...)
	if len(w.s.Pauses) != 0 {
		t.Errorf("pauses: %v", w.s.Pauses)
	}
}

func TestCommandsOnWhatIsNotThereAreErrors(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	cases := map[string]struct {
		ask   func() ([]journal.Draft, error)
		is    error
		names string
	}{
		"pause of an unknown node":  {func() ([]journal.Draft, error) { return fsm.Pause(w.s, w.now, "x99", "", 0, person) }, ErrUnknownNode, "did you mean"},
		"resume without a pause":    {func() ([]journal.Draft, error) { return fsm.Resume(w.s, "", "", person) }, fsm.ErrNotPaused, "nothing else is"},
		"resume of a running node":  {func() ([]journal.Draft, error) { return fsm.Resume(w.s, "w1", "", person) }, fsm.ErrNotPaused, "node w1"},
		"resume of an unknown node": {func() ([]journal.Draft, error) { return fsm.Resume(w.s, "w11", "", person) }, ErrUnknownNode, "w1"},
		"retry of an ended action":  {func() ([]journal.Draft, error) { return fsm.Retry(w.s, "purge-w1", "", person) }, fsm.ErrNoSuchAction, id},
		"cancel of no action":       {func() ([]journal.Draft, error) { return fsm.Cancel(w.s, "", "", person) }, fsm.ErrNoSuchAction, ""},
		"accept of a sound journal": {func() ([]journal.Draft, error) { return fsm.Accept(w.s, "", person) }, fsm.ErrNotInSafeMode, ""},
		"pause for a negative time": {func() ([]journal.Draft, error) { return fsm.Pause(w.s, w.now, "", "", -1, person) }, nil, "negative"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			drafts, err := test.ask()
			if err == nil || len(drafts) > 0 || (test.is != nil && !errors.Is(err, test.is)) || !strings.Contains(err.Error(), test.names) {
				t.Errorf("got %v, %v; want an error %v that names %q", drafts, err, test.is, test.names)
			}
		})
	}
}

func TestAnActionIsCancelledOnceAndOnlyBeforeItsPointOfNoReturn(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	drafts, err := fsm.Cancel(w.s, id, "wrong node", person)
	if err != nil || len(drafts) != 1 {
		t.Fatal(drafts, err)
	}
	w.write(drafts...)
	if rec := w.s.Actions[id]; rec.Status != fsm.Cancelling || rec.Cancelling.Reason != "wrong node" {
		t.Errorf("record: %+v", rec)
	}
	if again, err := fsm.Cancel(w.s, id, "", person); err != nil || len(again) != 0 {
		t.Errorf("cancelled again: %v, %v", again, err)
	}
	if _, err := fsm.Retry(w.s, id, "", person); !errors.Is(err, fsm.ErrRefused) {
		t.Errorf("retry of an action that is being cancelled: %v", err)
	}
	w.plan(id)
	w.startStep(id, "delete-node")
	wantAdvice := func(what, advice string) {
		t.Helper()
		if _, err := fsm.Cancel(w.s, id, "", person); !errors.Is(err, fsm.ErrPastNoReturn) || !strings.Contains(err.Error(), advice) {
			t.Errorf("cancel %s past the point of no return: %v", what, err)
		}
	}
	wantAdvice("of an action that runs", "ekco history --action "+id+" --follow")
	w.act(id, journal.TypeActionStalled, journal.ActionStalled{Step: "delete-node", Reason: "r"})
	wantAdvice("of a stalled action", "ekco retry "+id)
	if _, err := fsm.Retry(w.s, id, "", person); err != nil {
		t.Errorf("retry of a stalled action past the point of no return: %v", err)
	}
}

func TestAnActionThatIsTakenBackCanStallAndBeRetried(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.act(id, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{
		Steps: []journal.PlannedStep{{ID: "unlist"}, {ID: "delete-node", Irreversible: true}},
		Undo:  []journal.PlannedStep{{ID: "list", Undoes: "unlist"}},
	}})
	w.startStep(id, "unlist")
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "delete-node", Preflight: "X"})
	w.act(id, journal.TypeActionStalled, journal.ActionStalled{Step: "unlist"})
	w.act(id, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "wrong node"})
	rec := w.s.Actions[id]
	if rec.Status != fsm.Cancelling || rec.Stalled != nil || len(rec.Holds) != 0 {
		t.Errorf("it turns back, and is %s: %+v", rec.Status, rec)
	}
	w.startStep(id, "list")
	w.act(id, journal.TypeActionStalled, journal.ActionStalled{Step: "list"})
	if rec := w.s.Actions[id]; rec.Status != fsm.Stalled || rec.PastNoReturn {
		t.Errorf("it cannot turn back, and is %s: %+v", rec.Status, rec)
	}
	drafts, err := fsm.Retry(w.s, id, "repaired", person)
	if err != nil {
		t.Fatal(err)
	}
	w.write(drafts...)
	if rec := w.s.Actions[id]; rec.Status != fsm.Cancelling || rec.Stalled != nil || rec.Cancelling == nil {
		t.Errorf("it turns back again, and is %s: %+v", rec.Status, rec)
	}
	w.act(id, journal.TypeStepDone, journal.StepDone{Step: "list", Attempt: 1})
	if _, err := fsm.Retry(w.s, id, "", person); !errors.Is(err, fsm.ErrRefused) {
		t.Errorf("retry with nothing left to take back: %v", err)
	}
	if len(w.s.Problems) > 0 {
		t.Errorf("problems: %q", w.s.Problems)
	}
}

// TestAForceNamesTheListThatHolds: the person may have read another one. What is no list needs no name.
func TestAForceNamesTheListThatHolds(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.act(id, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "unlist"}, {ID: "delete"}}}})
	force := func(list, want string) {
		t.Helper()
		drafts, err := fsm.RetryPast(w.s, id, list, "", person)
		if refused := errors.Is(err, fsm.ErrRefused); refused != (want != "") || refused != (len(drafts) == 0) || refused && !strings.Contains(err.Error(), want) {
			t.Errorf("list %q: %v, %v; want it refused with %q", list, drafts, err, want)
		}
	}
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "unlist", Preflight: "X", Key: "1a"})
	force("", "")
	force("1a", "list 1a does not hold")
	for _, key := range []string{"1a", "2b"} { // it changes
		w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "unlist", Preflight: "X", Key: key, List: true})
		force(key, "")
	}
	const command = "ekco retry --force --list 2b "
	force("", command+id)
	force("1a", command+id)
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "delete", Preflight: "Y", Key: "3c"}) // no list
	force("", command+id)
	if _, err := fsm.Retry(w.s, id, "", person); err != nil {
		t.Errorf("without force: %v", err)
	}
}

func TestResumeNamesWhatIsPaused(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	for _, node := range []string{"", "p1"} {
		drafts, err := fsm.Pause(w.s, w.now, node, "", 0, person)
		if err != nil {
			t.Fatal(err)
		}
		w.write(drafts...)
	}
	if _, err := fsm.Resume(w.s, "w1", "", person); err == nil || !strings.HasSuffix(err.Error(), "paused: everything p1") {
		t.Error(err)
	}
}

func TestAcceptEndsSafeMode(t *testing.T) {
	for typ, payload := range map[journal.Type]journal.Payload{
		journal.TypeJournalSalvaged: journal.JournalSalvaged{Problem: "p"},
		journal.TypeJournalOutdated: journal.JournalOutdated{LastSeq: 1, Mirrored: journal.Position{Seq: 9}},
	} {
		w := newWorld(t)
		w.tell(typ, journal.JournalSubject, payload)
		if !w.s.Journal.SafeMode() {
			t.Errorf("no safe mode after %s", typ)
		}
		drafts, err := fsm.Accept(w.s, "looked", person)
		if err != nil {
			t.Fatal(err)
		}
		w.write(drafts...)
		if w.s.Journal.SafeMode() {
			t.Errorf("still in safe mode after %s", typ)
		}
	}
}
