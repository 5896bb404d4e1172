package ring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestWhatWasFoundOfANodeBeforeTheClockJumpedIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnseen(t)
		in := u.start(nil)
		pass(time.Minute)
		if _, err := in.Backend(nil).Explain(t.Context(), askPurge("primary-9")); err != nil {
			t.Fatal(err)
		}
		u.setClock(3 * time.Hour)
		pass(2 * clockCheckInterval)
		if _, err := in.Backend(nil).Explain(t.Context(), askPurge("primary-9")); err != nil {
			t.Fatal(err)
		}
		found := lastSearch{}
		u.command(in.do(t.Context(), func(*fsm.State) { found = in.lastSearch }))
		if found.began.Before(u.now().Add(-time.Hour)) {
			t.Errorf("what was found at %s counts at %s", found.began, u.now())
		}
		mustStop(t, in)
	})
}

// jumpedWhileAway starts a ring in the boot of an earlier one, after the clock was set.
func (w *world) jumpedWhileAway(arm func(*incarnation)) *incarnation {
	w.t.Helper()
	first := w.start(nil)
	pass(time.Minute)
	mustStop(w.t, first)
	w.setClock(3 * time.Hour)
	return w.start(arm)
}

func TestNothingBeginsBeforeTheClockThatWasSetMeanwhileIsOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := automatic(t)
		store := &refusing{Store: w.store}
		w.store = store
		jumped := journal.TypeClockJumped
		in := w.jumpedWhileAway(func(*incarnation) { store.refuses.Store(&jumped) })
		pass(10 * time.Minute)
		if in.isStarted() || len(w.events(journal.Query{Types: []journal.Type{journal.TypeOperatorStarted}})) != 1 {
			t.Error("it began by a clock that is nobody's")
		}
		store.refuses.Store(nil)
		pass(time.Minute)
		if got := w.jumps(); !in.isStarted() || len(got) != 1 {
			t.Errorf("the clock jumped by %v on record", got)
		}
		mustStop(t, in)
	})
}

func TestNoJumpOfTheClockIsWrittenIntoAJournalBeforeItsClusterIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := automatic(t)
		in := w.jumpedWhileAway(func(*incarnation) { w.cluster.Outage(true) })
		pass(10 * time.Minute)
		if got := w.jumps(); len(got) != 0 {
			t.Errorf("the clock jumped by %v on record", got)
		}
		w.cluster.Outage(false)
		pass(time.Minute)
		if got := w.jumps(); len(got) != 1 {
			t.Errorf("the clock jumped by %v on record, want once", got)
		}
		mustStop(t, in)
	})
}
