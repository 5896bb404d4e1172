package ring

import (
	"encoding/json"
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

const person = "cli:root@p1"

// pauses sets the pause of a node, or of everything if name is "".
func (w *world) pauses(in *incarnation, name string, after time.Duration) {
	w.t.Helper()
	w.command(in.Backend(nil).Do(w.t.Context(), api.PauseRequest{Name: name, Reason: "new switch", For: after, Actor: person}))
}

func (w *world) resumes(in *incarnation, name string) {
	w.t.Helper()
	w.command(in.Backend(nil).Do(w.t.Context(), api.ResumeRequest{Name: name, Actor: person}))
}

// unmirrored requires that a command answers that the mirror does not have it.
func (w *world) unmirrored(err error) {
	w.t.Helper()
	if !errors.Is(err, api.ErrNotMirrored) {
		w.t.Fatalf("it is answered with %v", err)
	}
}

// inForce requires exactly these pauses, by their keys; "" is the pause of everything.
func (w *world) inForce(keys ...string) {
	w.t.Helper()
	if got := w.state().Pauses; !slices.Equal(slices.Sorted(maps.Keys(got)), keys) {
		w.t.Fatalf("in force are %+v, want %q", got, keys)
	}
}

// dies ends the incarnation at once; what it wrote last stays.
func (w *world) dies(in *incarnation) {
	w.t.Helper()
	in.life.kill()
	w.t.Logf("it ended: %v", <-in.ended)
}

// empty is the journal of an EKCO on a new machine.
func (w *world) empty() journal.Store { return memory.New(memory.Clock(w.now)) }

// goesOn ends the incarnation at once, and starts EKCO with that journal.
func (w *world) goesOn(in *incarnation, store journal.Store) *incarnation {
	w.t.Helper()
	w.dies(in)
	w.store = store
	return w.started()
}

// outrun returns a copy of the journal that EKCO went on from. Another EKCO knew the later events, and has the mirror.
func (w *world) outrun() journal.Store {
	w.t.Helper()
	in := w.started()
	pass(time.Minute)
	old := w.copied()
	for range 3 {
		w.pauses(in, "worker-1", 0)
		w.resumes(in, "worker-1")
	}
	pass(time.Minute)
	w.dies(w.goesOn(in, w.empty()))
	return old
}

func (w *world) journalID() string {
	w.t.Helper()
	stat, err := w.store.Stat(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return stat.JournalID
}

func TestPausesSurviveTheLossOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		in := w.started()
		w.pauses(in, "", 0)
		w.pauses(in, "worker-1", 24*time.Hour)
		before, first := w.state().Pauses, w.journalID()

		in = w.goesOn(in, w.empty()) // right after the answers
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
		w.inForce("")
		w.stop(in)
		checkReplay(t, w)
	})
}

// TestAJournalThatComesBackDoesNotBringBackAPause has the first machine return after a person resumed, and
// paused something else, where EKCO went on.
func TestAJournalThatComesBackDoesNotBringBackAPause(t *testing.T) {
	for name, c := range map[string]struct {
		ahead   time.Duration
		returns func(w *world, first journal.Store)
	}{
		"with its journal":                   {},
		"of a mirror that was copied on":     {returns: func(w *world, _ journal.Store) { w.store = w.empty(); w.stop(w.started()) }},
		"of a journal that began another":    {returns: func(w *world, first journal.Store) { w.store = first; w.stop(w.started()) }},
		"of a machine whose clock was ahead": {ahead: 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				first := memory.New(memory.Clock(func() time.Time { return w.now().Add(c.ahead) }))
				w.store = first
				in := w.started()
				w.pauses(in, "", 0)
				w.pauses(in, "worker-1", 0)
				in = w.goesOn(in, w.empty())
				w.resumes(in, "")
				w.pauses(in, "worker-3", 0)
				w.dies(in)
				if c.returns != nil {
					c.returns(w, first)
				}
				w.store = first
				in = w.started()
				w.inForce("node/worker-1", "node/worker-3")
				if by := w.state().Pauses["node/worker-3"].By; by != person {
					t.Errorf("it was paused by %q", by)
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
		w.unmirrored(in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "r", Actor: person}))
		w.inForce("")
		w.dies(in)
		first := w.store
		w.cluster.Allow("update configmaps")

		w.store = w.empty()
		in = w.started()
		w.pauses(in, "worker-1", 0)
		in = w.goesOn(in, first)
		w.inForce("", "node/worker-1")
		w.resumes(in, "")
		w.stop(in)
	})
}

func TestResumeSaysThatTheMirrorStillHasThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "worker-1", 0)
		w.cluster.Forbid("update configmaps")
		w.unmirrored(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Name: "worker-1", Actor: person}))
		w.inForce()
		if len(w.mirrored().Pauses) != 1 {
			t.Errorf("the mirror has %+v", w.mirrored().Pauses)
		}
		w.stop(in)
	})
}

func TestAnEndedPauseIsNotTakenBackFromTheMirrorOfAnOtherEKCO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		first := w.store
		w.stop(w.goesOn(in, w.empty())) // it has the pause, and the mirror
		w.store = first
		w.tell(journal.ClusterSubject, journal.TypePauseCleared, journal.PauseCleared{}) // a person, while no operator runs
		in = w.started()
		w.inForce()
		w.stop(in)
	})
}

func TestAnOlderCopyOfTheJournalFollowsTheMirrorsPauses(t *testing.T) {
	mirrored := []string{"node/worker-1", "node/worker-2"}
	for name, c := range map[string]struct {
		went func(w *world)
		want []string
	}{
		"as it was": {func(*world) {}, mirrored},
		"which went on": {func(w *world) {
			for range 100 {
				w.tell(journal.NodeSubject("worker-3", ""), journal.TypePauseCleared, journal.PauseCleared{})
			}
		}, mirrored},
		"in which somebody paused a node since": {func(w *world) {
			w.tell(journal.NodeSubject("worker-3", ""), journal.TypePauseSet, journal.PauseSet{Reason: "since"})
		}, append(mirrored, "node/worker-3")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.started()
				w.pauses(in, "", 0)
				w.pauses(in, "worker-1", 0)
				old := w.copied()
				pass(time.Minute)
				w.resumes(in, "")
				w.pauses(in, "worker-2", 0)
				w.dies(in)
				w.store = old
				pass(time.Minute)
				c.went(w)
				in = w.started()
				w.inForce(c.want...)
				if !w.state().Journal.SafeMode() {
					t.Error("it is not in safe mode")
				}
				w.stop(in)
			})
		})
	}
}

// TestAPauseSetInAnOlderCopyStays, before EKCO starts with it: another EKCO knew other events with the same numbers.
func TestAPauseSetInAnOlderCopyStays(t *testing.T) {
	salvaged := (*world).salvaged
	for name, c := range map[string]struct {
		behind        time.Duration
		before, after func(w *world)
	}{
		"as it was": {},
		"beside an older EKCO, which mirrored no hashes of other journals": {before: func(w *world) {
			var members map[string]json.RawMessage
			if err := json.Unmarshal([]byte(w.mirror()), &members); err != nil || members["covered_at"] == nil {
				w.t.Fatalf("%v in %s", err, w.mirror())
			}
			delete(members, "covered_at")
			content, err := json.Marshal(members)
			if err != nil {
				w.t.Fatal(err)
			}
			w.cluster.SetMirror(content)
		}},
		"of a journal that lost its end, by a clock that is behind": {behind: 3 * time.Hour, before: salvaged},
		"which went on and lost its end": {after: func(w *world) {
			for range 50 {
				w.tell(journal.NodeSubject("worker-3", ""), journal.TypePauseCleared, journal.PauseCleared{})
			}
			w.salvaged()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.store = memory.New(memory.Clock(func() time.Time { return w.now().Add(-c.behind) }))
				w.store = w.outrun()
				pass(time.Hour)
				if c.before != nil {
					c.before(w)
				}
				w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{Reason: "new switch"})
				if c.after != nil {
					c.after(w)
				}
				in := w.started()
				w.inForce("")
				w.stop(in)
			})
		})
	}
}

// TestAnOlderCopyKeepsAPauseThatNoMirrorKnew: another EKCO, which has the mirror, wrote it once more since.
func TestAnOlderCopyKeepsAPauseThatNoMirrorKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.outrun()
		second := w.store

		w.store = old
		w.cluster.Forbid("update configmaps")
		in := w.started()
		w.unmirrored(in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "new switch", Actor: person}))
		w.inForce("")
		w.dies(in)
		w.cluster.Allow("update configmaps")

		w.store = second
		in = w.started()
		w.pauses(in, "worker-3", 0)
		in = w.goesOn(in, old)
		w.inForce("", "node/worker-3")
		w.stop(in)
	})
}

// TestAPauseThatWasTakenOverAndEndedDoesNotComeBack: EKCO restarts before the mirror has the end.
func TestAPauseThatWasTakenOverAndEndedDoesNotComeBack(t *testing.T) {
	for name, takes := range map[string]func(w *world, before journal.Store){
		"in a new journal": func(w *world, _ journal.Store) {
			w.store = w.empty()
			w.cluster.Forbid("update configmaps")
		},
		"from a journal that has it, too": func(w *world, _ journal.Store) {
			first := w.store
			w.store = w.empty()
			second, in := w.store, w.started()
			w.inForce("")
			w.dies(w.goesOn(in, first))
			w.store = second
			w.cluster.Forbid("update configmaps")
		},
		"in the safe mode of a journal that lost it": func(w *world, before journal.Store) {
			w.store = w.empty()
			w.dies(w.started())
			w.store = before
			w.salvaged()
		},
		"in the safe mode of the journal that took it over": func(w *world, _ journal.Store) {
			w.store = w.empty()
			in := w.started()
			pass(time.Minute)
			w.dies(in)
			w.salvaged()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.started()
				pass(time.Minute)
				before := w.copied()
				w.pauses(in, "", 0)
				w.dies(in)
				takes(w, before)
				in = w.started()
				w.inForce("")
				w.unmirrored(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person}))
				w.inForce()
				w.dies(in)
				w.cluster.Allow("update configmaps")
				in = w.started()
				w.inForce()
				w.stop(in)
			})
		})
	}
}

// TestAPauseThatWasTakenOverAndShortenedStaysShort: EKCO restarts before the mirror has the change.
func TestAPauseThatWasTakenOverAndShortenedStaysShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.cluster.Forbid("update configmaps")
		in = w.goesOn(in, w.empty())
		w.unmirrored(in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "an hour", For: time.Hour, Actor: person}))
		w.dies(in)
		w.cluster.Allow("update configmaps")
		in = w.started()
		if got := w.state().Pauses[""]; got.Reason != "an hour" {
			t.Errorf("in force is %+v", got)
		}
		pass(2 * time.Hour)
		w.inForce()
		w.stop(in)
	})
}

// TestAPauseThatWasTakenOverEndsWithItsOrigin: the EKCO that took it over died before it had the mirror, and the first
// one came back and ended the pause.
func TestAPauseThatWasTakenOverEndsWithItsOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.cluster.Forbid("update configmaps")
		first, second := w.store, w.empty()
		in = w.goesOn(in, second)
		w.inForce("")
		w.dies(in)
		w.cluster.Allow("update configmaps")

		w.store = first
		in = w.started()
		w.resumes(in, "")
		in = w.goesOn(in, second)
		w.inForce()
		w.stop(in)
	})
}

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
				w.unmirrored(in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "an hour", For: time.Hour, Actor: person}))
				w.dies(in)
				first := w.store
				w.cluster.Allow("update configmaps")

				w.store = w.empty()
				in = w.started()
				w.pauses(in, "", 0) // answered: the mirror has it, and it has no end
				w.dies(in)
				pass(away)

				w.store = first
				in = w.started()
				pass(3 * time.Hour)
				w.inForce("")
				w.stop(in)
			})
		})
	}
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
		w.inForce("node/worker-1")
		told("", seq)
		if after := written(); after.At != before.At || len(after.Pauses) != 2 {
			t.Fatalf("the mirrors have %+v and %+v", before, after)
		}
		w.cluster.Allow("update configmaps")
		pass(10 * time.Minute)
		w.inForce("", "node/worker-1")
		if w.mirrored().JournalID == stat.JournalID {
			t.Error("the mirror was not taken over")
		}
		w.stop(in)
	})
}
