package ring

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// goneJournal leaves an open purge in the mirror, and no file of the journal that has it. It returns the lost journal.
func (w *world) goneJournal(host string) journal.Store {
	w.t.Helper()
	w.host = host
	w.openPurge()
	old := w.store
	w.store = memory.New(memory.Clock(w.now))
	return old
}

func TestAJournalThatIsGoneFromItsMachineIsReportedAndWaitsForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.goneJournal("primary-1")
		mirrored, deleted := w.mirror(), w.cluster.Count("delete-node worker-2")
		for range 2 {
			in := w.started()
			pass(3 * time.Hour)
			_, err := in.Backend(nil).Request(t.Context(), askPurge("worker-1"))
			if open := w.state().OpenActions(); len(open) != 1 || !errors.Is(err, api.ErrRefused) {
				t.Errorf("another purge: %v; open is %+v, want the purge of the mirror", err, open)
			}
			w.stop(in)
		}
		if lost := w.outdated(); len(lost) != 1 || lost[0].Gone == "" || lost[0].Gone == w.journalID() || lost[0].LastSeq != 0 || lost[0].Mirrored.Seq == 0 {
			t.Errorf("the journal says %+v", lost)
		}
		if w.mirror() != mirrored || w.cluster.Count("delete-node worker-2") != deleted {
			t.Error("EKCO wrote the mirror or continued the purge before anybody accepted the journal")
		}

		in := w.started()
		w.accept(in)
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged || w.mirror() == mirrored {
			t.Errorf("after the journal was accepted the node is %s", got)
		}
		w.stop(in)
		w.stop(w.started())
		if w.state().Journal.SafeMode() || len(w.outdated()) != 1 {
			t.Error("what was accepted is found again")
		}
		checkReplay(t, w)
	})
}

func TestAJournalThatIsPutBackContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.goneJournal("primary-1")
		w.stop(w.started())
		w.store = old
		in := w.started()
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged || len(w.outdated()) != 0 {
			t.Errorf("the node is %s, lost are %+v", got, w.outdated())
		}
		w.stop(in)
	})
}

// TestOnAnotherMachineTheJournalIsTakenOver: so it is where the machine is unknown, and for a command, which may have a
// journal of its own.
func TestOnAnotherMachineTheJournalIsTakenOver(t *testing.T) {
	for name, here := range map[string]func(w *world){
		"another machine": func(w *world) { w.host = "primary-2" },
		"a command":       func(w *world) { w.onlyNode, w.worksFor = "worker-2", "purge-node worker-2" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.goneJournal("primary-1")
				here(w)
				in := w.started()
				if w.state().Journal.SafeMode() || len(w.outdated()) != 0 {
					t.Errorf("lost are %+v", w.outdated())
				}
				w.stop(in)
			})
		})
	}
}

// TestACommandWithAnotherJournalHidesNoJournalOfItsMachine: the operator's journal is intact when the operator returns.
func TestACommandWithAnotherJournalHidesNoJournalOfItsMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.host = "primary-1"
		w.stop(w.started())
		own := w.store
		w.store, w.onlyNode, w.worksFor = w.empty(), "worker-2", "purge-node worker-2"
		w.loseWorker()
		in := w.started()
		_, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		pass(10 * time.Minute)
		if err != nil || w.mirrored().JournalID != w.journalID() {
			t.Fatalf("the command did not write the mirror: %v", err)
		}
		w.stop(in)
		w.store, w.onlyNode, w.worksFor = own, "", ""
		in = w.started()
		if w.state().Journal.SafeMode() {
			t.Errorf("lost are %+v", w.outdated())
		}
		w.stop(in)
	})
}

func TestTwoUnknownMachinesAreNotTheSame(t *testing.T) {
	if (&Ring{}).wroteHere(mirror.Content{JournalID: "other"}) {
		t.Error("a mirror without a machine is of this machine")
	}
}

// losable is a journal whose file another program may delete.
type losable struct {
	journal.Store
	lost atomic.Bool
}

func (s *losable) Stat(ctx context.Context) (journal.Stat, error) {
	stat, err := s.Store.Stat(ctx)
	stat.Replaced = s.lost.Load()
	return stat, err
}

func (s *losable) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	if s.lost.Load() {
		return nil, &journal.UnwritableError{Cause: journal.ErrFileReplaced}
	}
	return s.Store.Append(ctx, drafts...)
}

// intact is an archive whose journal is intact.
type intact struct{ Archive }

func (intact) VerifyNow(context.Context) (api.VerifyResult, error) { return api.VerifyResult{}, nil }

func TestAnIdleEKCONoticesThatItsFileIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		file := &losable{Store: w.store}
		w.store = file
		in := w.started()
		pass(time.Hour)
		backend := in.Backend(intact{})
		for _, lost := range []bool{false, true, false} {
			file.lost.Store(lost)
			pass(time.Minute)
			_, err := backend.Verify(t.Context())
			status, statusErr := backend.Status(t.Context())
			if errors.Is(err, journal.ErrFileReplaced) != lost || status.Journal.FileReplaced != lost || status.Journal.Writable == lost || statusErr != nil {
				t.Errorf("lost is %t: verify returns %v, the status %+v, %v", lost, err, status.Journal, statusErr)
			}
			if ready := len(in.Unready(t.Context())) == 0; ready == lost {
				t.Errorf("lost is %t, ready is %t", lost, ready)
			}
		}
		w.stop(in)
	})
}
