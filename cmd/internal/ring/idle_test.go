package ring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// wantUntouched checks that an open action has no event after that one, and
// nothing happened outside but to the mirror.
func (w *world) wantUntouched(id string, last uint64, effects int) {
	w.t.Helper()
	for _, event := range w.events(journal.Query{Action: id, After: last}) {
		w.t.Errorf("%s of %s: %s", event.Type, id, event.Payload)
	}
	for _, effect := range w.cluster.Effects()[effects:] {
		if effect.Name != "write-mirror" {
			w.t.Errorf("it did %s", effect.Name)
		}
	}
}

func TestAnOperatorInADryRunDoesNotGoOnWithARealPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		open, effects := w.onlyOpen(), len(w.cluster.Effects())
		w.policy.DryRun = true
		in := w.start(nil)
		pass(3 * time.Hour)
		w.wantUntouched(open.ID, open.LastSeq, effects)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		w.policy.DryRun = false
		in = w.start(nil)
		pass(time.Hour)
		if n := w.cluster.Count("delete-node worker-2"); n != 1 {
			t.Errorf("the Node was deleted %d times by the operator that is none, want once", n)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNoOpenActionIsGoneOnWithInSafeModeUntilTheJournalIsAccepted(t *testing.T) {
	for name, leaveOpen := range map[string]func(w *world){
		"a purge by hand": (*world).openPurge,
		"a clear": func(w *world) {
			if err := w.openClear().stop(); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				leaveOpen(w)
				w.cluster.Allow("delete pods")
				w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{DamagedFile: "f"})
				open, effects := w.onlyOpen(), len(w.cluster.Effects())
				in := w.start(nil)
				pass(3 * time.Hour)
				w.wantUntouched(open.ID, open.LastSeq, effects)
				w.command(in.Backend(nil).Do(t.Context(), api.AcceptRequest{Reason: "looked at it", Actor: "cli:root@test"}))
				pass(time.Hour)
				if left := w.state().OpenActions(); len(left) != 0 {
					t.Errorf("left open is %+v", left)
				}
				if err := in.stop(); err != nil {
					t.Error(err)
				}
				checkIntentBeforeEffect(t, w)
			})
		})
	}
}
