package ring

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// resumes ends all pauses of the cluster while the mirror cannot have it.
func (w *world) resumes(in *incarnation) {
	w.t.Helper()
	err := in.Backend(nil).Do(w.t.Context(), api.ResumeRequest{Actor: person})
	if !errors.Is(err, api.ErrNotMirrored) || len(w.state().Pauses) != 0 {
		w.t.Fatalf("it is answered with %v, in force are %+v", err, w.state().Pauses)
	}
}

// TestAPauseThatWasTakenOverAndEndedDoesNotComeBack: EKCO restarts before the mirror has the end.
func TestAPauseThatWasTakenOverAndEndedDoesNotComeBack(t *testing.T) {
	for name, lost := range map[string]func(w *world, old journal.Store, kept uint64){
		"in a new journal": func(w *world, _ journal.Store, _ uint64) {
			w.store = memory.New(memory.Clock(w.now))
			w.cluster.Forbid("update configmaps")
		},
		"in safe mode": func(w *world, old journal.Store, kept uint64) {
			w.store = memory.New(memory.Clock(w.now))
			w.dies(w.started())
			w.store = old
			w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: kept})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.started()
				pass(time.Minute)
				old := w.copied()
				kept := w.state().Seq
				w.pauses(in, "", 0)
				w.dies(in)
				lost(w, old, kept)
				in = w.started()
				if len(w.state().Pauses) != 1 {
					t.Fatalf("in force are %+v", w.state().Pauses)
				}
				w.resumes(in)
				w.dies(in)
				w.cluster.Allow("update configmaps")
				in = w.started()
				if len(w.state().Pauses) != 0 {
					t.Errorf("in force are %+v", w.state().Pauses)
				}
				w.stop(in)
			})
		})
	}
}

// TestAPauseSetBeforeAnOlderCopyIsUsedStaysBesideAnOlderEKCO, which did not mirror the hashes of other journals' events.
func TestAPauseSetBeforeAnOlderCopyIsUsedStaysBesideAnOlderEKCO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		pass(time.Minute)
		old := w.copied()
		for range 3 {
			w.pauses(in, "worker-1", 0)
			w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Name: "worker-1", Actor: person}))
		}
		pass(time.Minute)
		w.dies(in)
		w.store = memory.New(memory.Clock(w.now))
		w.dies(w.started())
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(w.mirror()), &members); err != nil || members["covered_at"] == nil {
			t.Fatalf("%v in %s", err, w.mirror())
		}
		delete(members, "covered_at")
		content, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		w.cluster.SetMirror(content)
		w.store = old
		pass(time.Hour)
		w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{Reason: "new switch"})
		in = w.started()
		if len(w.state().Pauses) != 1 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAPauseSetPastASalvageStays, whatever the clocks say: another EKCO knew lost events with the same numbers, and has
// the mirror.
func TestAPauseSetPastASalvageStays(t *testing.T) {
	for name, c := range map[string]struct {
		behind time.Duration
		// others are further events after the pause, which the salvage keeps with it.
		others int
	}{
		"of a journal that lost its end":            {behind: 3 * time.Hour},
		"of an older copy that went on and lost it": {others: 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.store = memory.New(memory.Clock(func() time.Time { return w.now().Add(-c.behind) }))
				in := w.started()
				pass(time.Minute)
				old := w.copied()
				kept := w.state().Seq
				for range 3 {
					w.pauses(in, "worker-1", 0)
					w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Name: "worker-1", Actor: person}))
				}
				pass(time.Minute)
				w.dies(in)
				w.store = memory.New(memory.Clock(w.now))
				w.dies(w.started())
				w.store = old
				pass(time.Hour)
				salvage := func() {
					w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: kept})
				}
				if c.others == 0 {
					salvage()
				}
				w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{Reason: "new switch"})
				for range c.others {
					w.tell(journal.NodeSubject("worker-3", ""), journal.TypePauseCleared, journal.PauseCleared{})
				}
				if c.others > 0 {
					kept = w.state().Seq
					salvage()
				}
				in = w.started()
				if len(w.state().Pauses) != 1 {
					t.Errorf("in force are %+v", w.state().Pauses)
				}
				w.stop(in)
			})
		})
	}
}
