package ring

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// unplannedPurge leaves the purge of worker-2 that a person asked for without a plan.
func (w *world) unplannedPurge() (in *incarnation, action string) {
	w.t.Helper()
	w.policy.ClearDeadNodes = false
	in = w.started()
	w.cluster.Forbid("get nodes") // it cannot be planned, so it stays as it is
	w.loseWorker()
	pass(time.Second)
	admission, err := in.Backend(nil).Request(w.t.Context(), askPurge("worker-2"))
	if err != nil {
		w.t.Fatal(err)
	}
	pass(time.Minute)
	return in, admission.Action
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
				store := &refusing{Store: w.empty()}
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
		in, action := w.unplannedPurge()
		first := w.store
		in = w.goesOn(in, w.empty())
		w.command(in.Backend(nil).Do(t.Context(), api.RetryRequest{Action: action, Force: true, Actor: person}))
		pass(time.Minute)
		want := w.onlyOpen().Forced
		in = w.goesOn(in, first)
		if got := w.onlyOpen(); got.ID != action || len(want) == 0 || !slices.Equal(got.Forced, want) || len(w.state().Problems) != 0 {
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

// TestAnOlderCopyKeepsAForceThatNoMirrorKnew: another EKCO continued the action, and knew more events of that journal.
func TestAnOlderCopyKeepsAForceThatNoMirrorKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in, action := w.unplannedPurge()
		old := w.copied()
		for range 30 {
			w.pauses(in, "worker-1", 0)
			w.resumes(in, "worker-1")
		}
		pass(time.Minute)
		w.dies(w.goesOn(in, w.empty()))

		w.store = old
		w.cluster.Forbid("update configmaps")
		in = w.started()
		_ = in.Backend(nil).Do(t.Context(), api.RetryRequest{Action: action, Force: true, Actor: person})
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

func TestTheCooldownSurvivesTheLossOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		w.stop(w.started())
		pass(time.Second)
		ended := w.state().EndedAt[journal.ActionPurgeNode]
		w.store = w.empty()
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
		w.store = w.empty()
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

// TestTheLastKeptEventIsOfTheSameJournal: a copy of a journal may have other events with the same numbers.
func TestTheLastKeptEventIsOfTheSameJournal(t *testing.T) {
	store := memory.New()
	for range 5 {
		draft := journal.Draft{Type: journal.TypePauseCleared, Subject: journal.ClusterSubject, Payload: journal.PauseCleared{}}
		if _, err := store.Append(t.Context(), draft); err != nil {
			t.Fatal(err)
		}
	}
	end, err := journal.End(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	own := func(at journal.Position) mirror.Content {
		return mirror.Content{JournalID: "own", At: at, Carried: journal.Carried{Seq: end.Seq, Pauses: map[string]journal.Pause{}}}
	}
	others := func(knew uint64, at journal.Position) mirror.Content {
		return mirror.Content{JournalID: "other", Covered: map[string]uint64{"own": knew}, CoveredAt: map[string]journal.Position{"own": at}}
	}
	another := journal.Position{Seq: end.Seq}
	for name, test := range map[string]struct {
		content        mirror.Content
		salvaged, want uint64
	}{
		"the own mirror":                              {own(end), 0, end.Seq},
		"the own mirror, of another event":            {own(another), 0, 0},
		"the own mirror, before what a salvage kept":  {own(end), end.Seq, end.Seq},
		"the own mirror, of what a salvage lost":      {own(another), end.Seq - 2, end.Seq - 2},
		"another's mirror":                            {others(end.Seq, end), 0, end.Seq},
		"another's mirror, of another event":          {others(end.Seq, another), 0, 0},
		"another's mirror, of what a salvage lost":    {others(end.Seq, another), end.Seq - 2, end.Seq - 2},
		"another's mirror, without a position":        {others(end.Seq, journal.Position{}), 0, 0},
		"another's mirror, which knows no event here": {others(0, journal.Position{}), 0, end.Seq},
	} {
		s := &fsm.State{Seq: end.Seq}
		if test.salvaged > 0 {
			s.Journal.Salvaged = &journal.JournalSalvaged{LastSeq: test.salvaged}
		}
		r := &Ring{cfg: Config{Store: store}, journalID: "own"}
		if got, err := r.lastKeptEvent(t.Context(), s, test.content); err != nil || got != test.want {
			t.Errorf("%s: %d, %v; want %d", name, got, err, test.want)
		}
	}
}
