package ring

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// copied is a copy of the journal as it is now, to be put back later.
func (w *world) copied() journal.Store {
	return w.store.(*memory.Store).Copy()
}

// outdated returns what the journal says to have lost, newest last.
func (w *world) outdated() (found []journal.JournalOutdated) {
	w.t.Helper()
	for _, event := range w.events(journal.Query{Types: []journal.Type{journal.TypeJournalOutdated}}) {
		payload, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		found = append(found, *payload.(*journal.JournalOutdated))
	}
	return found
}

// started starts the ring and lets it come to rest.
func (w *world) started() *incarnation {
	w.t.Helper()
	in := w.start(nil)
	pass(time.Minute)
	return in
}

// stop stops the ring, which must have come to no harm.
func (w *world) stop(in *incarnation) {
	w.t.Helper()
	if err := in.stop(); err != nil {
		w.t.Error(err)
	}
}

// heldPurge has a person ask for the purge of worker-2, which is held because another
// EKCO has the mirror, and returns its action.
func (w *world) heldPurge() (in *incarnation, action string) {
	w.t.Helper()
	in = w.started()
	w.cluster.SetMirror([]byte(`{"format":1,"journal_id":"visitor","actions":[]}`))
	w.loseWorker()
	pass(time.Second)
	admission, err := in.Backend(nil).Request(w.t.Context(), askPurge("worker-2"))
	if err != nil {
		w.t.Fatal(err)
	}
	return in, admission.Action
}

// lostPurge leaves a journal of before the purge of worker-2, which is open and
// past its point of no return, as only the mirror knows.
func (w *world) lostPurge() {
	w.t.Helper()
	w.stop(w.started())
	old := w.copied()
	w.openPurge()
	w.store = old
}

func (w *world) accept(in *incarnation) {
	w.t.Helper()
	if err := in.Backend(nil).Do(w.t.Context(), api.AcceptRequest{Actor: "cli:root@test"}); err != nil {
		w.t.Fatal(err)
	}
}

func TestAJournalThatLostItsNewestEventsKeepsItsOpenPurgeAndWaitsForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.lostPurge()
		mirrored, deleted := w.mirror(), w.cluster.Count("delete-node worker-2")

		for range 3 { // each start finds the same, and says it once
			in := w.start(nil)
			pass(3 * time.Hour)
			status, err := in.Backend(nil).Status(t.Context())
			if err != nil || status.Journal.Outdated == nil {
				t.Fatalf("the status tells of no loss: %+v, %v", status.Journal, err)
			}
			if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-1")); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "ekco journal accept") {
				t.Errorf("a purge in safe mode: %v", err)
			}
			w.stop(in)
		}
		lost := w.outdated()
		if len(lost) != 1 || lost[0].Mirrored.Seq <= lost[0].LastSeq || lost[0].MirroredAt.IsZero() {
			t.Errorf("the journal says %+v", lost)
		}
		if w.mirror() != mirrored {
			t.Error("the mirror, the only record of what was lost, was written")
		}
		if w.cluster.Count("delete-node worker-2") != deleted {
			t.Error("the purge went on before anybody accepted the journal")
		}
		if open := w.state().OpenActions(); len(open) != 1 || !open[0].PastNoReturn {
			t.Fatalf("open is %+v, want the purge past its point of no return", open)
		}

		in := w.started()
		w.accept(in)
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged {
			t.Errorf("after the journal was accepted the node is %s", got)
		}
		if w.mirror() == mirrored {
			t.Error("after the journal was accepted the mirror is not written")
		}
		w.stop(in)
		in = w.started()
		if w.state().Journal.SafeMode() || len(w.outdated()) != 1 {
			t.Error("what was accepted is found again")
		}
		w.stop(in)
		checkIntentBeforeEffect(t, w)
		checkReplay(t, w)
	})
}

func TestAJournalThatWasAcceptedWhileNoOperatorRanIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lostPurge()
		in := w.started()
		w.stop(in)
		mirrored := w.mirror()
		w.tell(journal.JournalSubject, journal.TypeJournalAccepted, journal.JournalAccepted{})
		in = w.start(nil)
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged || len(w.outdated()) != 1 || w.mirror() == mirrored {
			t.Errorf("the node is %s, lost are %+v", got, w.outdated())
		}
		w.stop(in)
	})
}

func TestAnActionThatWasCancelledInTheLostEventsIsNotCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in, action := w.heldPurge()
		pass(5 * time.Second)
		old := w.copied()
		if err := in.Backend(nil).Do(t.Context(), api.CancelRequest{Action: action, Actor: "cli:root@test"}); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		w.stop(in)
		w.store = old
		in = w.started()
		if open := w.state().OpenActions(); len(open) != 0 {
			t.Errorf("open is %+v, want nothing: it was cancelled", open)
		}
		w.accept(in)
		pass(time.Hour)
		if n := w.cluster.Count("delete-node worker-2"); n != 0 {
			t.Error("the Node was deleted although the purge had been cancelled")
		}
		w.stop(in)
	})
}

func TestAJournalThatWentOnWithoutItsNewestEventsIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lostPurge()
		for range 100 { // without EKCO: as somebody who paused and resumed
			w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{})
			w.tell(journal.ClusterSubject, journal.TypePauseCleared, journal.PauseCleared{})
		}
		mirrored := w.mirror()
		in := w.start(nil)
		pass(time.Hour)
		if lost := w.outdated(); len(lost) != 1 || lost[0].LastSeq != 0 {
			t.Errorf("the journal says %+v", lost)
		}
		if open := w.state().OpenActions(); len(open) != 1 || !w.state().Journal.SafeMode() || w.mirror() != mirrored {
			t.Errorf("safe mode is %v, open is %+v", w.state().Journal.SafeMode(), open)
		}
		w.stop(in)
	})
}

func TestAPauseThatAnOlderJournalForgotIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		in := w.started()
		old := w.copied()
		if err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "new switch", Actor: "cli:root@test"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		in.life.kill()
		t.Logf("the first one ended: %v", <-in.ended)
		w.store = old
		in = w.start(nil)
		w.loseWorker()
		pass(3 * time.Hour)
		if n := len(w.cluster.Effects()); !w.state().Journal.SafeMode() || w.cluster.Count("delete-node worker-2") != 0 {
			t.Errorf("safe mode is %v, %d effects", w.state().Journal.SafeMode(), n)
		}
		w.stop(in)
	})
}

func TestACommandOnAnOldJournalChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lostPurge()
		mirrored, deleted := w.mirror(), w.cluster.Count("delete-node worker-2")
		w.onlyNode = "worker-2"
		in := w.start(nil)
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "ekco journal accept") {
			t.Errorf("the purge is answered with %v", err)
		}
		pass(time.Hour)
		w.stop(in)
		if w.mirror() != mirrored || w.cluster.Count("delete-node worker-2") != deleted {
			t.Error("the command changed the mirror or the cluster")
		}
	})
}

func TestOfTwoThatGoOnWithCopiesOfOneJournalOneStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		elsewhere := &world{t: t, cluster: w.cluster, store: w.copied(), policy: w.policy}
		other := elsewhere.start(nil)
		pass(time.Minute)
		mirrored := w.mirror()

		w.loseWorker()
		pass(time.Second)
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		if !w.state().Journal.SafeMode() || elsewhere.state().Journal.SafeMode() {
			t.Errorf("safe mode is %v here and %v elsewhere, want it in the one that wrote the mirror first",
				w.state().Journal.SafeMode(), elsewhere.state().Journal.SafeMode())
		}
		if w.mirror() != mirrored || w.cluster.Count("delete-node worker-2") != 0 {
			t.Error("the one in safe mode wrote the mirror or deleted the Node")
		}
		w.stop(in)
		w.stop(other)
	})
}

func TestAWorkerWhoseActionWasFinishedWithACopyOfTheJournalStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in, _ := w.heldPurge()
		pass(10 * time.Second)
		elsewhere := &world{t: t, cluster: w.cluster, store: w.copied(), policy: w.policy}
		other := elsewhere.start(nil)
		pass(10 * time.Minute)
		state := w.state()
		if elsewhere.machine("worker-2").State != fsmnode.Purged || !state.Journal.SafeMode() {
			t.Fatalf("elsewhere the node is %s, here safe mode is %v", elsewhere.machine("worker-2").State, state.Journal.SafeMode())
		}
		running := -1
		w.command(in.do(t.Context(), func(*fsm.State) { running = len(in.workers) }))
		// The mirror that the other writes first names this journal too. Who sees it then may begin
		// the step as well, and has its end on record no more; more often it does not.
		begun := func(open journal.ActionRecord) bool { return open.Steps["delete-node"].Attempts > 0 }
		if unbegun := slices.DeleteFunc(state.OpenActions(), begun); len(unbegun) != 0 || len(state.Problems) != 0 || running != 0 {
			t.Errorf("open is %+v, %d workers run, problems are %q", unbegun, running, state.Problems)
		}
		w.stop(in)
		w.stop(other)
	})
}

func TestTheEventThatTheMirrorNamesStaysInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		backend := in.Backend(nil) // whose words are no facts that stay anyway
		w.command(backend.Do(t.Context(), api.PauseRequest{Reason: "test", Actor: "cli:root@test"}))
		w.command(backend.Do(t.Context(), api.ResumeRequest{Actor: "cli:root@test"}))
		pass(time.Second)
		covered := in.mirror.Covered()
		needed, err := in.Needed(t.Context())
		if err != nil || covered.Seq == 0 {
			t.Fatalf("the mirror names %+v, %v", covered, err)
		}
		for _, event := range w.events(journal.Query{}) {
			if event.Seq == covered.Seq && (!needed(event) || event.Hash != covered.Hash) {
				t.Errorf("event %d may leave the journal, or is another one: %+v", event.Seq, event)
			}
		}
		w.stop(in)
	})
}

func TestNothingIsMirroredInSafeMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lostPurge()
		mirrored := w.mirror()
		in := w.started()
		verdict := in.requireMirrored(t.Context(), journal.ActionRecord{})
		pass(time.Minute)
		if verdict.Kind != actions.Hold("").Kind || w.mirror() != mirrored {
			t.Errorf("asked before a step, the mirror answers %+v and was written", verdict)
		}
		w.stop(in)
	})
}
