package ring

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// TestAPauseThatExpiredWhileAMachineWasAwayHidesNoOther: the pause of the journal that comes back was never mirrored.
// Meanwhile a person paused everything without an end, where EKCO went on.
func TestAPauseThatExpiredWhileAMachineWasAwayHidesNoOther(t *testing.T) {
	for name, away := range map[string]time.Duration{"expired": 2 * time.Hour, "in force": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.started()
				pass(time.Minute)
				w.cluster.Forbid("update configmaps")
				err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "an hour", For: time.Hour, Actor: person})
				if !errors.Is(err, api.ErrNotMirrored) {
					t.Fatal(err)
				}
				w.dies(in)
				first := w.store
				w.cluster.Allow("update configmaps")

				w.store = memory.New(memory.Clock(w.now))
				in = w.started()
				w.pauses(in, "", 0) // answered: the mirror has it, and it has no end
				w.dies(in)
				time.Sleep(away)

				w.store = first
				in = w.started()
				pass(3 * time.Hour)
				if _, everything := w.state().Pauses[""]; !everything {
					t.Errorf("in force are %+v", w.state().Pauses)
				}
				w.stop(in)
			})
		})
	}
}

// TestAMirrorWithNothingNewBringsBackNoPause: both journals have the pause of a third one.
func TestAMirrorWithNothingNewBringsBackNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.dies(in)
		first := w.store

		w.store = memory.New(memory.Clock(w.now))
		in = w.started()
		w.dies(in)
		second := w.store
		if len(w.state().Pauses) != 1 {
			t.Fatal("the pause was not taken over")
		}

		w.store = first
		in = w.started()
		w.dies(in)

		w.store = second
		w.cluster.Forbid("update configmaps")
		in = w.started()
		err := in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person})
		if !errors.Is(err, api.ErrNotMirrored) || len(w.state().Pauses) != 0 {
			t.Fatalf("%v, in force are %+v", err, w.state().Pauses)
		}
		w.dies(in)
		w.cluster.Allow("update configmaps")
		in = w.started()
		if len(w.state().Pauses) != 0 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAPauseThatIsMirroredAtAnEventThatWasTakenOverBeforeIsTakenOver: the position of a mirror is read when it is
// written, so it may be that of an event which the content does not have yet.
func TestAPauseThatIsMirroredAtAnEventThatWasTakenOverBeforeIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		elsewhere, other := kubesim.New(), memory.New(memory.Clock(w.now))
		stat, err := other.Stat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := mirror.New(elsewhere, stat.JournalID, w.logger(), mirror.Journal(other))
		go m.Run(t.Context())
		_, _ = m.Load(t.Context())
		pauses := map[string]journal.Pause{}
		set := func(subject journal.Subject) uint64 {
			events, err := other.Append(t.Context(), journal.Draft{
				Type: journal.TypePauseSet, Subject: subject, Actor: person, Payload: journal.PauseSet{Reason: "r"},
			})
			if err != nil {
				t.Fatal(err)
			}
			return events[0].Seq
		}
		told := func(key string, seq uint64) {
			pauses = maps.Clone(pauses)
			pauses[key] = journal.Pause{Reason: "r", By: person, At: time.Now(), Seq: seq}
			m.Update(nil, "", journal.Carried{Seq: seq, Pauses: pauses})
		}
		written := func() mirror.Content {
			if err := m.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			raw, _, err := elsewhere.ReadMirror(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.cluster.SetMirror(raw)
			return w.mirrored()
		}
		told("node/worker-1", set(journal.NodeSubject("worker-1", "")))
		seq := set(journal.ClusterSubject) // and now the former is written
		before := written()

		w.cluster.Forbid("update configmaps") // the other one is faster
		in := w.started()
		if len(w.state().Pauses) != 1 {
			t.Fatalf("in force are %+v", w.state().Pauses)
		}
		told("", seq)
		if after := written(); after.At != before.At || len(after.Pauses) != 2 {
			t.Fatalf("the mirrors have %+v and %+v", before, after)
		}
		w.cluster.Allow("update configmaps")
		pass(10 * time.Minute)
		if _, everything := w.state().Pauses[""]; !everything || w.mirrored().JournalID == stat.JournalID {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAnOlderCopyKeepsAPauseThatNoMirrorKnew: another EKCO, which has the mirror, wrote it once more since.
func TestAnOlderCopyKeepsAPauseThatNoMirrorKnew(t *testing.T) {
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
		second := w.store

		w.store = old
		w.cluster.Forbid("update configmaps")
		in = w.started()
		err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "new switch", Actor: person})
		if !errors.Is(err, api.ErrNotMirrored) || len(w.state().Pauses) != 1 {
			t.Fatalf("%v, in force are %+v", err, w.state().Pauses)
		}
		w.dies(in)
		w.cluster.Allow("update configmaps")

		w.store = second
		in = w.started()
		w.pauses(in, "worker-3", 0)
		w.dies(in)
		w.store = old
		in = w.started()
		if _, everything := w.state().Pauses[""]; !everything {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAPauseThatASalvagedJournalTookOverAndEndedStaysEnded, in safe mode, in which nothing is mirrored.
func TestAPauseThatASalvagedJournalTookOverAndEndedStaysEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.dies(in)
		w.store = memory.New(memory.Clock(w.now))
		in = w.started()
		pass(time.Minute)
		w.dies(in)
		w.salvaged()
		in = w.started()
		if len(w.state().Pauses) != 1 {
			t.Fatalf("in force are %+v", w.state().Pauses)
		}
		_ = in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person})
		if len(w.state().Pauses) != 0 {
			t.Fatalf("in force are %+v", w.state().Pauses)
		}
		w.dies(in)
		in = w.started()
		if len(w.state().Pauses) != 0 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAnOlderCopyKeepsAForceThatNoMirrorKnew: another EKCO continued the action, and knew more events of that journal.
func TestAnOlderCopyKeepsAForceThatNoMirrorKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		in := w.started()
		w.cluster.Forbid("get nodes") // it cannot be planned, so it stays as it is
		w.loseWorker()
		pass(time.Second)
		admission, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		old := w.copied()
		for range 30 {
			w.pauses(in, "worker-1", 0)
			w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Name: "worker-1", Actor: person}))
		}
		pass(time.Minute)
		w.dies(in)
		w.store = memory.New(memory.Clock(w.now))
		w.dies(w.started())

		w.store = old
		w.cluster.Forbid("update configmaps")
		in = w.started()
		_ = in.Backend(nil).Do(t.Context(), api.RetryRequest{Action: admission.Action, Force: true, Actor: person})
		pass(time.Second)
		want := w.onlyOpen().Forced
		if len(want) == 0 {
			t.Fatal("nothing was forced")
		}
		w.dies(in)
		w.cluster.Allow("update configmaps")
		in = w.started()
		if got := w.onlyOpen(); !slices.Equal(got.Forced, want) {
			t.Errorf("forced is %+v, want %+v", got.Forced, want)
		}
		w.stop(in)
	})
}
