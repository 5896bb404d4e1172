package ring

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

const person = "cli:root@p1"

func (w *world) pauses(in *incarnation, name string, after time.Duration) {
	w.t.Helper()
	w.command(in.Backend(nil).Do(w.t.Context(), api.PauseRequest{Name: name, Reason: "new switch", For: after, Actor: person}))
}

// dies ends the incarnation at once; what it wrote last stays.
func (w *world) dies(in *incarnation) {
	w.t.Helper()
	in.life.kill()
	w.t.Logf("it ended: %v", <-in.ended)
}

func TestPausesSurviveTheLossOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		in := w.started()
		w.pauses(in, "", 0)
		w.pauses(in, "worker-1", 24*time.Hour)
		w.dies(in) // right after the answers
		before, first := w.state().Pauses, w.journalID()

		w.store = memory.New(memory.Clock(w.now))
		in = w.started()
		w.loseWorker()
		pass(3 * time.Hour)
		if n := w.cluster.Count("delete-node worker-2"); n != 0 {
			t.Error("the Node was deleted although EKCO is paused")
		}
		for key, want := range before {
			if got := w.state().Pauses[key]; got.By != person || got.Reason != want.Reason || !got.At.Equal(want.At) || !got.Until.Equal(want.Until) {
				t.Errorf("the pause of %q is %+v, want %+v", key, got, want)
			}
		}
		status, err := in.Backend(nil).Status(t.Context())
		if adopted := status.Journal.Adopted; err != nil || adopted == nil || adopted.JournalID != first || adopted.Pauses != 2 || adopted.MirroredAt.IsZero() {
			t.Errorf("the status says %+v, %v", adopted, err)
		}
		pass(24 * time.Hour)
		if len(w.state().Pauses) != 1 {
			t.Errorf("a pause did not run out: %+v", w.state().Pauses)
		}
		w.stop(in)
		checkReplay(t, w)
	})
}

func (w *world) journalID() string {
	w.t.Helper()
	stat, err := w.store.Stat(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return stat.JournalID
}

// TestAJournalThatComesBackDoesNotBringBackAPause has the first machine return after a person resumed, and
// paused something else, where EKCO went on.
func TestAJournalThatComesBackDoesNotBringBackAPause(t *testing.T) {
	for name, returns := range map[string]func(w *world, first journal.Store){
		"with its journal": func(w *world, first journal.Store) { w.store = first },
		"of a mirror that was copied on": func(w *world, first journal.Store) {
			w.store = memory.New(memory.Clock(w.now))
			w.stop(w.started())
			w.store = first
		},
		"of a journal that began another":    func(w *world, first journal.Store) { w.store = first; w.stop(w.started()) },
		"of a machine whose clock was ahead": func(w *world, first journal.Store) { w.store = first },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if strings.Contains(name, "ahead") {
					w.store = memory.New(memory.Clock(func() time.Time { return w.now().Add(3 * time.Hour) }))
				}
				in := w.started()
				w.pauses(in, "", 0)
				w.pauses(in, "worker-1", 0)
				w.dies(in)
				first := w.store

				w.store = memory.New(memory.Clock(w.now))
				in = w.started()
				w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person}))
				w.pauses(in, "worker-3", 0)
				w.dies(in)

				returns(w, first)
				in = w.started()
				pauses := w.state().Pauses
				if _, everything := pauses[""]; everything || len(pauses) != 2 || pauses["node/worker-3"].By != person {
					t.Errorf("in force are %+v", pauses)
				}
				w.stop(in)
				checkReplay(t, w)
			})
		})
	}
}

func TestAPauseThatNoMirrorKnewStaysInItsJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		pass(time.Minute)
		w.cluster.Forbid("update configmaps")
		err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "r", Actor: person})
		if !errors.Is(err, api.ErrNotMirrored) || len(w.state().Pauses) != 1 {
			t.Errorf("the pause is answered with %v, in force are %+v", err, w.state().Pauses)
		}
		w.dies(in)
		first := w.store
		w.cluster.Allow("update configmaps")

		w.store = memory.New(memory.Clock(w.now))
		in = w.started()
		w.pauses(in, "worker-1", 0)
		w.dies(in)

		w.store = first
		in = w.started()
		if len(w.state().Pauses) != 2 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person}))
		w.stop(in)
	})
}

func TestResumeSaysThatTheMirrorStillHasThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "worker-1", 0)
		w.cluster.Forbid("update configmaps")
		err := in.Backend(nil).Do(t.Context(), api.ResumeRequest{Name: "worker-1", Actor: person})
		if !errors.Is(err, api.ErrNotMirrored) || len(w.state().Pauses) != 0 || len(w.mirrored().Pauses) != 1 {
			t.Errorf("the end of the pause is answered with %v, in force are %+v, the mirror has %+v", err, w.state().Pauses, w.mirrored().Pauses)
		}
		w.stop(in)
	})
}

func TestAnEndedPauseIsNotTakenBackFromTheMirrorOfAnOtherEKCO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.dies(in)
		first := w.store
		w.store = memory.New(memory.Clock(w.now))
		w.stop(w.started()) // it has the pause, and the mirror
		w.store = first
		w.tell(journal.ClusterSubject, journal.TypePauseCleared, journal.PauseCleared{}) // a person, while no operator runs
		in = w.started()
		if len(w.state().Pauses) != 0 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

func TestAnOlderCopyOfTheJournalFollowsTheMirrorsPauses(t *testing.T) {
	for name, went := range map[string]func(w *world){
		"as it was": func(*world) {},
		"which went on": func(w *world) {
			for range 100 {
				w.tell(journal.NodeSubject("worker-3", ""), journal.TypePauseCleared, journal.PauseCleared{})
			}
		},
		"in which somebody paused a node since": func(w *world) {
			w.tell(journal.NodeSubject("worker-3", ""), journal.TypePauseSet, journal.PauseSet{Reason: "since"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.started()
				w.pauses(in, "", 0)
				w.pauses(in, "worker-1", 0)
				old := w.copied()
				pass(time.Minute)
				w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person}))
				w.pauses(in, "worker-2", 0)
				w.dies(in)
				w.store = old
				pass(time.Minute)
				went(w)
				since := len(w.state().Pauses) - 2
				in = w.started()
				pauses := w.state().Pauses
				if _, everything := pauses[""]; everything || len(pauses) != 2+since || !w.state().Journal.SafeMode() {
					t.Errorf("in force are %+v, safe mode %v", pauses, w.state().Journal.SafeMode())
				}
				w.stop(in)
			})
		})
	}
}

// TestAPauseThatASalvageLostIsTakenBack: another EKCO took it over, and has the mirror.
func TestAPauseThatASalvageLostIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		pass(time.Minute)
		old := w.copied()
		kept := w.state().Seq
		w.pauses(in, "", 0)
		w.dies(in)
		w.store = memory.New(memory.Clock(w.now))
		w.dies(w.started())
		w.store = old
		w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: kept})
		in = w.started()
		if len(w.state().Pauses) != 1 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAPauseSetBeforeAnOlderCopyIsUsedStays: another EKCO knew more of that journal, and has the mirror.
func TestAPauseSetBeforeAnOlderCopyIsUsedStays(t *testing.T) {
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

// TestAMirrorStaysUntilItIsTakenOver: the new journal's disk is full, and a person says something meanwhile.
func TestAMirrorStaysUntilItIsTakenOver(t *testing.T) {
	for name, say := range map[string]func(w *world, b *Backend) error{
		"a pause": func(w *world, b *Backend) error {
			return b.Do(w.t.Context(), api.PauseRequest{Name: "worker-1", Reason: "r", Actor: person})
		},
		"a resume that is refused": func(w *world, b *Backend) error {
			return b.Do(w.t.Context(), api.ResumeRequest{Name: "worker-3", Actor: person})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.openPurge()
				before := w.mirror()
				store := &refusing{Store: memory.New(memory.Clock(w.now))}
				adopted := journal.TypeActionAdopted
				store.refuses.Store(&adopted)
				w.store = store
				in := w.start(nil)
				pass(time.Minute)
				if err := say(w, in.Backend(nil)); err == nil {
					t.Error("the answer does not say that the mirror does not have it")
				}
				pass(time.Minute)
				if w.mirror() != before {
					t.Error("the mirror was replaced before it was taken over")
				}
				store.refuses.Store(nil)
				pass(10 * time.Minute)
				if n := len(w.events(journal.Query{Types: []journal.Type{adopted}})); n != 1 {
					t.Errorf("%d actions were taken over", n)
				}
				w.dies(in)
			})
		})
	}
}

func TestTimesOfAClockThatWasAheadAreNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		in := w.started()
		at := time.Now().AddDate(5, 0, 0).UTC()
		stamp := func(t time.Time) string { return t.Format(time.RFC3339) }
		w.cluster.SetMirror([]byte(`{"format":3,"journal_id":"another","written_at":"` + stamp(at) + `","seq":4,"pauses":{"node/worker-1":{"reason":"2 h","by":"cli:a","at":"` +
			stamp(at) + `","until":"` + stamp(at.Add(2*time.Hour)) + `"}},"ended_at":{"purge-node":"` + stamp(at) + `"},"actions":[]}`))
		_ = in.Backend(nil).Do(t.Context(), api.PauseRequest{Name: "worker-3", Reason: "it meets the other mirror", Actor: person})
		pass(10 * time.Minute)
		pause, is := w.state().Pauses["node/worker-1"]
		if ended := w.state().EndedAt[journal.ActionPurgeNode]; ended.IsZero() || ended.After(time.Now()) {
			t.Errorf("the last purge ended at %s", ended)
		}
		if !is || pause.At.After(time.Now()) || pause.Until.Sub(pause.At) != 2*time.Hour {
			t.Errorf("the pause is %+v", pause)
		}
		w.stop(in)
		checkReplay(t, w)
	})
}

func TestAForceSurvivesTheReturnOfTheFirstJournal(t *testing.T) {
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
		w.dies(in)
		first := w.store

		w.store = memory.New(memory.Clock(w.now))
		in = w.started()
		w.command(in.Backend(nil).Do(t.Context(), api.RetryRequest{Action: admission.Action, Force: true, Actor: person}))
		pass(time.Minute)
		want := w.onlyOpen().Forced
		w.dies(in)

		w.store = first
		in = w.started()
		if got := w.onlyOpen(); got.ID != admission.Action || len(want) == 0 || !slices.Equal(got.Forced, want) || len(w.state().Problems) != 0 {
			t.Errorf("open is %+v, problems %q", got, w.state().Problems)
		}
		adopted := w.events(journal.Query{Types: []journal.Type{journal.TypeActionAdopted}})
		if len(adopted) != 1 {
			t.Errorf("the record was taken over %d times", len(adopted))
		}
		w.stop(in)
		checkReplay(t, w)
	})
}

func TestTheCooldownSurvivesTheLossOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		w.stop(w.started())
		pass(time.Second)
		ended := w.state().EndedAt[journal.ActionPurgeNode]
		w.store = memory.New(memory.Clock(w.now))
		in := w.started()
		if got := w.state().EndedAt[journal.ActionPurgeNode]; ended.IsZero() || !got.Equal(ended) {
			t.Errorf("the last purge ended at %s, want %s", got, ended)
		}
		w.stop(in)
	})
}

func TestTheStatusNamesActionsThatTheMirrorDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		large := journal.ActionRequested{
			Kind: journal.ActionPurgeNode, Reason: strings.Repeat("x", 9<<20), Manual: true, Input: journal.PurgeInput{Live: true},
		}
		subject := journal.NodeSubject("worker-2", w.machine("worker-2").UID)
		draft := journal.Draft{Type: journal.TypeActionRequested, Actor: person, Action: "purge-worker-2-1", Subject: subject, Payload: large}
		if _, err := w.store.Append(t.Context(), draft); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		status, err := in.Backend(nil).Status(t.Context())
		if err != nil || len(status.NotMirrored) != 1 || status.NotMirrored[0] != draft.Action {
			t.Errorf("not mirrored are %q, %v", status.NotMirrored, err)
		}
		held := ""
		for _, hold := range w.onlyOpen().Holds {
			held += hold.Preflight + " " + hold.Key
		}
		if !strings.Contains(held, "Mirrored no space") || w.cluster.Count("delete-node worker-2") != 0 {
			t.Errorf("held by %q", held)
		}
		w.stop(in)
	})
}

func TestAnEKCOBesideAnIncompleteMirrorKeepsItsPausesAndHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "worker-1", 0)
		w.dies(in)
		w.says("journal_id", "another")
		whole, err := json.Marshal(journal.ActionRecord{
			ID: "purge-worker-2-1", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("worker-2", w.machine("worker-2").UID),
			Request: journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.cluster.SetMirror([]byte(strings.Replace(w.mirror(), `"actions":[]`, `"actions":[`+string(whole)+`],"parts":[{"name":"ekco-journal-x-1","sha256":"00","ends":true,"actions":["a"]}]`, 1)))
		mirrored := w.mirror()
		w.store = memory.New(memory.Clock(w.now))
		in = w.started()
		verdict := in.requireMirrored(t.Context(), journal.ActionRecord{Kind: journal.ActionPurgeNode, Plan: journal.Plan{Steps: []journal.PlannedStep{{Irreversible: true}}}})
		if adopted := w.events(journal.Query{Types: []journal.Type{journal.TypeActionAdopted}}); len(adopted) != 0 {
			t.Errorf("taken over was %s, which may depend on what is in the missing part", adopted[0].Payload)
		}
		if len(w.state().Pauses) != 1 || w.mirror() != mirrored || verdict.Key != mirror.Key(mirror.ErrIncomplete) {
			t.Errorf("in force are %+v, the mirror is %s, the verdict %+v", w.state().Pauses, w.mirror(), verdict)
		}
		w.stop(in)
	})
}
