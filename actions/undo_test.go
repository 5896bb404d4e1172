package actions_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// undoable has the steps a, b and c, one after the other, of which a and b can be
// taken back, and then one that cannot.
func undoable() *script {
	last := step("last", "c")
	last.Irreversible = true
	return &script{
		steps: []journal.PlannedStep{step("a"), step("b", "a"), step("c", "b"), last},
		undo:  []journal.PlannedStep{undoes("undo a", "a"), undoes("undo b", "b")},
	}
}

func undoes(id, undone string) journal.PlannedStep {
	s := step(id)
	s.Undoes = undone
	return s
}

// cancelBy has a person cancel the action.
func (w *world) cancelBy(r *running) {
	w.append("cli:me@here", journal.ActionCancelling{Reason: "changed my mind"}, journal.TypeActionCancelling)
	if r != nil {
		w.tell(r, journal.TypeActionCancelling)
	}
}

// during calls f once, while the step is under way.
func (k *script) during(id string, f func()) {
	var once sync.Once
	k.do = func(_ context.Context, doing string) error {
		if doing == id {
			once.Do(f)
		}
		return nil
	}
}

func TestACancelTakesBackWhatWasBegunTheNewestFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		w.requestTest()
		r := w.ready()
		k.during("c", func() {
			w.cancelBy(r)
			<-time.After(time.Second)
		})
		r.begin(w.config(k.kinds()), w.record())
		r.end()
		w.wantStory("requested", "planned 4", "started a #1", "done a #1", "started b #1", "done b #1", "started c #1", "cancelling",
			"done c #1", "started undo b #1", "done undo b #1", "started undo a #1", "done undo a #1", "ended cancelled changed my mind")
	})
}

func TestWhatWasNotBegunIsNotTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights = []string{"X"}
		w.requestTest()
		r := w.start(w.guardedBy(k, answering(actions.Hold("not yet"))))
		letPass(time.Minute)
		w.cancelBy(r)
		r.end()
		w.wantStory("requested", "planned 4", "started a #1", "done a #1", `held "b" by X`, "cancelling",
			"started undo a #1", "done undo a #1", "ended cancelled changed my mind")
	})
}

func TestAStepThatFailedWasBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.do = func(_ context.Context, id string) error {
			if id == "b" {
				return errBroken
			}
			return nil
		}
		k.prove = func(_ context.Context, id string) (bool, error) {
			return id != "b" && slices.Contains(k.calls(), id), nil
		}
		w.requestTest()
		r := w.start(w.config(k.kinds()))
		letPass(5 * time.Hour)
		w.cancelBy(r)
		r.end()
		if w.count("stalled") != 1 || w.count("done undo b") != 1 || w.count("done undo a") != 1 || !w.ended() {
			t.Errorf("the journal says %q", w.story())
		}
	})
}

func TestPastItsPointOfNoReturnNothingIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		w.requestTest()
		r := w.ready()
		k.during("last", func() {
			w.cancelBy(r)
			<-time.After(time.Second)
		})
		r.begin(w.config(k.kinds()), w.record())
		r.end()
		if w.count("started undo") != 0 || w.lastLine() != "ended done" {
			t.Errorf("the journal says %q", w.story())
		}
	})
}

func TestAnActionThatLosesItsReasonTakesBackWhatItDidAndSaysSoFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights = []string{"X"}
		guard := answering(actions.Hold("not yet"))
		w.requestTest()
		r := w.start(w.guardedBy(k, guard))
		letPass(time.Minute)
		guard.turn(actions.Abandon("it is back"))
		r.end()
		w.wantStory("requested", "planned 4", "started a #1", "done a #1", `held "b" by X`, "cancelling",
			"started undo a #1", "done undo a #1", "ended abandoned it is back")
	})
}

func TestACancelDoesNotWaitForTheProofOfWhatIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.prove = func(_ context.Context, id string) (bool, error) {
			return id != "c" && slices.Contains(k.calls(), id), nil
		}
		w.requestTest()
		r := w.start(w.config(k.kinds()))
		letPass(10 * time.Second)
		w.cancelBy(r)
		if took := r.end(); took > time.Second {
			t.Errorf("it turned back after %s", took)
		}
		w.wantStory("requested", "planned 4", "started a #1", "done a #1", "started b #1", "done b #1", "started c #1", "cancelling",
			"failed c #1 for good", "started undo b #1", "done undo b #1", "started undo a #1", "done undo a #1", "ended cancelled changed my mind")
	})
}

func TestWhatCannotBeTakenBackStallsAndARetryGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		var broken sync.Map
		broken.Store("undo b", true)
		w.requestTest()
		r := w.ready()
		k.do = func(_ context.Context, id string) error {
			if id == "c" {
				w.cancelBy(r)
				<-time.After(time.Second)
			}
			if _, is := broken.Load(id); is {
				return errBroken
			}
			return nil
		}
		k.prove = func(_ context.Context, id string) (bool, error) {
			_, is := broken.Load(id)
			return !is && slices.Contains(k.calls(), id), nil
		}
		r.begin(w.config(k.kinds()), w.record())
		letPass(5 * time.Hour)
		record := w.record()
		if record.Stalled == nil || record.Stalled.Step != "undo b" || record.Status != "Stalled" || !record.Undoing() {
			t.Errorf("the action is %s, stalled %+v", record.Status, record.Stalled)
		}
		r.halt()
		r = w.start(w.config(k.kinds()))
		letPass(time.Hour)
		if w.count("started undo a") != 0 {
			t.Errorf("it went on past what it could not take back: %q", w.story())
		}
		broken.Delete("undo b")
		w.retry(r)
		r.end()
		if w.count("done undo b") != 1 || w.count("done undo a") != 1 || w.lastLine() != "ended cancelled changed my mind" {
			t.Errorf("the journal says %q", w.story())
		}
	})
}

func TestWhatIsTakenBackHasPreflightsOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.undo[1].Preflights = []string{"X"}
		guard := answering(actions.Hold("no answer"))
		w.requestTest()
		r := w.ready()
		k.during("c", func() {
			w.cancelBy(r)
			<-time.After(time.Second)
		})
		r.begin(w.guardedBy(k, guard), w.record())
		letPass(time.Hour)
		if hold := w.record().Holds["undo b"]; hold.Preflight != "X" || w.count("started undo") != 0 {
			t.Errorf("held by %+v; %q", hold, w.story())
		}
		r.halt()
		guard.turn(actions.Pass())
		w.runToEnd(w.guardedBy(k, guard))
		if w.count(`released "undo b" by X`) != 1 || w.count("done undo a") != 1 {
			t.Errorf("the journal says %q", w.story())
		}
	})
}

func TestADryRunHasNothingToTakeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[2].Preflights = []string{"X"}
		w.request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true})
		r := w.start(w.guardedBy(k, answering(actions.Hold("not yet"))))
		letPass(time.Minute)
		w.cancelBy(r)
		r.end()
		if w.count("started undo") != 0 || w.lastLine() != "ended cancelled changed my mind" {
			t.Errorf("the journal says %q", w.story())
		}
	})
}

func TestAPlanThatCannotBeTakenBackAsItSaysIsNotCarriedOut(t *testing.T) {
	for name, spoil := range map[string]func(k *script){
		"undoes what is not planned":   func(k *script) { k.undo[0].Undoes = "z" },
		"undoes what is irreversible":  func(k *script) { k.undo[0].Undoes = "last" },
		"undoes what undoes":           func(k *script) { k.undo[0].Undoes = "undo b" },
		"has the id of a step":         func(k *script) { k.undo[0].ID = "a" },
		"has the id of another":        func(k *script) { k.undo[0].ID = "undo b" },
		"comes after something":        func(k *script) { k.undo[0].After = []string{"a"} },
		"is irreversible":              func(k *script) { k.undo[0].Irreversible = true },
		"does what this EKCO does not": func(k *script) { k.undo[0].Does = "later" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := undoable()
				spoil(k)
				w.requestTest()
				r := w.start(w.config(k.kinds()))
				letPass(time.Minute)
				if len(k.calls()) != 0 && k.undo[0].Does == "act" {
					t.Errorf("it did %q", k.calls())
				}
				r.halt()
			})
		})
	}
}

func TestAnActionKilledAtAnyPointOfItsWayBackTakesEverythingBack(t *testing.T) {
	want := []string{"a", "b", "c", "undo b", "undo a"}
	run := func(t *testing.T, at int) (points int) {
		inBubble(t, func(t *testing.T, w *world) {
			k := undoable()
			k.steps[3].Preflights = []string{"X"}
			cfg := w.guardedBy(k, answering(actions.Hold("not yet")))
			w.requestTest()
			r := w.start(cfg)
			letPass(time.Minute)
			r.halt()
			w.cancelBy(nil)
			for _, fatal := range []int{at, 0} {
				if w.ended() {
					break
				}
				ctx, kill := context.WithTimeout(t.Context(), time.Hour)
				f := &fuse{at: fatal, kill: kill, lock: make(chan struct{}, 1)}
				mortal := cfg
				mortal.Store = mortalStore{w.store, f}
				err := actions.NewRunner(mortal).Run(ctx, w.record(), nil)
				kill()
				if points += f.passed; fatal == 0 && err != nil {
					t.Fatalf("the last incarnation ended with %v", err)
				}
			}
			if !w.ended() || w.lastLine() != "ended cancelled changed my mind" {
				t.Errorf("killed at point %d: %q", at, w.story())
			}
			if got := compact(k.calls()); !slices.Equal(got, want) {
				t.Errorf("killed at point %d it did %q", at, got)
			}
		})
		return points
	}
	points := run(t, 0)
	if points < 6 {
		t.Fatalf("only %d points", points)
	}
	for at := 1; at <= points; at++ {
		run(t, at)
	}
}

// compact leaves out what is repeated.
func compact(calls []string) []string { return slices.Compact(calls) }

func TestWhatIsTakenBackIsGuardedByTheMirrorToo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		cfg := w.config(k.kinds())
		mirrored := answering(actions.Pass())
		cfg.Preflights[actions.Mirrored] = mirrored
		w.requestTest()
		r := w.ready()
		k.during("c", func() {
			mirrored.turn(actions.Hold("another EKCO is at it"))
			w.cancelBy(r)
			<-time.After(time.Second)
		})
		r.begin(cfg, w.record())
		letPass(time.Hour)
		if held := fmt.Sprint(w.record().Holds); !strings.Contains(held, "another EKCO") || w.count("started undo") != 0 {
			t.Errorf("held by %s; %q", held, w.story())
		}
		mirrored.turn(actions.Pass())
		r.end()
	})
}
