package ring

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/kube"
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
				w.command(in.Backend(nil).Accept(t.Context(), api.AcceptRequest{Reason: "looked at it", Actor: "cli:root@test"}))
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

func TestInADryRunTheClusterRefusesEveryChangeWhoeverAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		w.policy.DryRun = true
		in := w.start(nil)
		pass(time.Minute)
		for name, change := range map[string]func(kube.API) error{
			"DeleteNode":     func(c kube.API) error { return c.DeleteNode(t.Context(), "worker-1", "uid-worker-1-4") },
			"ForceDeletePod": func(c kube.API) error { return c.ForceDeletePod(t.Context(), "default", "web-0", "uid-web-0-7") },
			"WriteMirror":    func(c kube.API) error { _, err := c.WriteMirror(t.Context(), nil, ""); return err },
			"RecordEvent":    func(c kube.API) error { return c.RecordEvent(t.Context(), journal.ClusterSubject, kube.Note{}) },
		} {
			if err := change(in.Ring.kube); !errors.Is(err, kube.ErrReadOnly) {
				t.Errorf("%s: %v, want that it is refused", name, err)
			}
		}
		if effects := w.cluster.Effects(); len(effects) != 0 {
			t.Errorf("it did %+v", effects)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
