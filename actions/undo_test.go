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
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
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
		r := w.Ready()
		k.during("c", func() {
			w.Cancel(r)
			<-time.After(time.Second)
		})
		r.Begin(w.Config(k.kinds()), w.Record())
		r.End()
		w.WantStory("requested", "planned 4", "started a #1", "done a #1", "started b #1", "done b #1", "started c #1", "cancelling",
			"done c #1", "started undo b #1", "done undo b #1", "started undo a #1", "done undo a #1", "ended cancelled changed my mind")
	})
}

func TestWhatWasNotBegunIsNotTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights = []string{"X"}
		w.requestTest()
		r := w.Start(w.guardedBy(k, actionstest.NewPreflight(actions.Hold("not yet"))))
		w.Pass(time.Minute)
		w.Cancel(r)
		r.End()
		w.WantStory("requested", "planned 4", "started a #1", "done a #1", `held "b" by X`, "cancelling",
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
		r := w.Start(w.Config(k.kinds()))
		w.Pass(5 * time.Hour)
		w.Cancel(r)
		r.End()
		if w.Count("stalled") != 1 || w.Count("done undo b") != 1 || w.Count("done undo a") != 1 || !w.Ended() {
			t.Errorf("the journal says %q", w.Story())
		}
	})
}

func TestPastItsPointOfNoReturnNothingIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		w.requestTest()
		r := w.Ready()
		k.during("last", func() {
			w.Cancel(r)
			<-time.After(time.Second)
		})
		r.Begin(w.Config(k.kinds()), w.Record())
		r.End()
		if w.Count("started undo") != 0 || w.LastLine() != "ended done" {
			t.Errorf("the journal says %q", w.Story())
		}
	})
}

func TestAnActionThatLosesItsReasonTakesBackWhatItDidAndSaysSoFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights = []string{"X"}
		guard := actionstest.NewPreflight(actions.Hold("not yet"))
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(time.Minute)
		guard.SetVerdict(actions.Abandon("it is back"))
		r.End()
		w.WantStory("requested", "planned 4", "started a #1", "done a #1", `held "b" by X`, "cancelling",
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
		r := w.Start(w.Config(k.kinds()))
		w.Pass(10 * time.Second)
		w.Cancel(r)
		if took := r.End(); took > time.Second {
			t.Errorf("it turned back after %s", took)
		}
		w.WantStory("requested", "planned 4", "started a #1", "done a #1", "started b #1", "done b #1", "started c #1", "cancelling",
			"failed c #1 for good", "started undo b #1", "done undo b #1", "started undo a #1", "done undo a #1", "ended cancelled changed my mind")
	})
}

func TestWhatCannotBeTakenBackStallsAndARetryGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		var broken sync.Map
		broken.Store("undo b", true)
		w.requestTest()
		r := w.Ready()
		k.do = func(_ context.Context, id string) error {
			if id == "c" {
				w.Cancel(r)
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
		r.Begin(w.Config(k.kinds()), w.Record())
		w.Pass(5 * time.Hour)
		record := w.Record()
		if record.Stalled == nil || record.Stalled.Step != "undo b" || record.Status != "Stalled" || !record.Undoing() {
			t.Errorf("the action is %s, stalled %+v", record.Status, record.Stalled)
		}
		r.Halt()
		r = w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		if w.Count("started undo a") != 0 {
			t.Errorf("it went on past what it could not take back: %q", w.Story())
		}
		broken.Delete("undo b")
		w.Retry(r)
		r.End()
		if w.Count("done undo b") != 1 || w.Count("done undo a") != 1 || w.LastLine() != "ended cancelled changed my mind" {
			t.Errorf("the journal says %q", w.Story())
		}
	})
}

func TestWhatIsTakenBackHasPreflightsOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.undo[1].Preflights = []string{"X"}
		guard := actionstest.NewPreflight(actions.Hold("no answer"))
		w.requestTest()
		r := w.Ready()
		k.during("c", func() {
			w.Cancel(r)
			<-time.After(time.Second)
		})
		r.Begin(w.guardedBy(k, guard), w.Record())
		w.Pass(time.Hour)
		if hold := w.Record().Holds["undo b"]; hold.Preflight != "X" || w.Count("started undo") != 0 {
			t.Errorf("held by %+v; %q", hold, w.Story())
		}
		r.Halt()
		guard.SetVerdict(actions.Pass())
		w.RunToEnd(w.guardedBy(k, guard))
		if w.Count(`released "undo b" by X`) != 1 || w.Count("done undo a") != 1 {
			t.Errorf("the journal says %q", w.Story())
		}
	})
}

func TestADryRunHasNothingToTakeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[2].Preflights = []string{"X"}
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true})
		r := w.Start(w.guardedBy(k, actionstest.NewPreflight(actions.Hold("not yet"))))
		w.Pass(time.Minute)
		w.Cancel(r)
		r.End()
		if w.Count("started undo") != 0 || w.LastLine() != "ended cancelled changed my mind" {
			t.Errorf("the journal says %q", w.Story())
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
				r := w.Start(w.Config(k.kinds()))
				w.Pass(time.Minute)
				if len(k.calls()) != 0 && k.undo[0].Does == "act" {
					t.Errorf("it did %q", k.calls())
				}
				r.Halt()
			})
		})
	}
}

func TestAnActionKilledAtAnyPointOfItsWayBackTakesEverythingBack(t *testing.T) {
	t.Parallel()
	want := []string{"a", "b", "c", "undo b", "undo a"}
	run := func(t *testing.T, at int) (points int) {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			t, w := bare.T, &world{bare}
			k := undoable()
			k.steps[3].Preflights = []string{"X"}
			cfg := w.guardedBy(k, actionstest.NewPreflight(actions.Hold("not yet")))
			w.requestTest()
			r := w.Start(cfg)
			w.Pass(time.Minute)
			r.Halt()
			w.Cancel(nil)
			for _, fatal := range []int{at, 0} {
				if w.Ended() {
					break
				}
				ctx, kill := context.WithTimeout(t.Context(), time.Hour)
				f := actionstest.NewFuse(fatal, kill)
				mortal := cfg
				mortal.Store = f.Store(w.Store)
				err := actions.NewRunner(mortal).Run(ctx, w.Record(), nil)
				kill()
				if points += f.Passed(); fatal == 0 && err != nil {
					t.Fatalf("the last incarnation ended with %v", err)
				}
			}
			if !w.Ended() || w.LastLine() != "ended cancelled changed my mind" {
				t.Errorf("killed at point %d: %q", at, w.Story())
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
	for _, at := range crashpoints.Choose(t, points) {
		run(t, at)
	}
}

// compact leaves out what is repeated.
func compact(calls []string) []string { return slices.Compact(calls) }

func TestWhatIsTakenBackIsGuardedByTheMirrorToo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		cfg := w.Config(k.kinds())
		mirrored := actionstest.NewPreflight(actions.Pass())
		cfg.Preflights[actions.Mirrored] = mirrored
		w.requestTest()
		r := w.Ready()
		k.during("c", func() {
			mirrored.SetVerdict(actions.Hold("another EKCO is at it"))
			w.Cancel(r)
			<-time.After(time.Second)
		})
		r.Begin(cfg, w.Record())
		w.Pass(time.Hour)
		if held := fmt.Sprint(w.Record().Holds); !strings.Contains(held, "another EKCO") || w.Count("started undo") != 0 {
			t.Errorf("held by %s; %q", held, w.Story())
		}
		mirrored.SetVerdict(actions.Pass())
		r.End()
	})
}

// TestAStepThatACancelEndsIsCutShortAndHasNotFailed: nothing went wrong with it.
func TestAStepThatACancelEndsIsCutShortAndHasNotFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.requestTest()
		r := w.Start(w.Config(newLong(step("a")).kinds()))
		w.Pass(time.Second)
		w.Cancel(r)
		r.End()
		ended := 0
		for _, event := range w.Events() {
			payload, err := event.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if failed, is := payload.(*journal.StepFailed); is && failed.CutShort {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("%d steps were cut short: %s", ended, strings.Join(w.Story(), "\n"))
		}
	})
}
