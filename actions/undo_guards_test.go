package actions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
)

func TestWhatLosesItsReasonAgainOnItsWayBackIsTakenBackAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.undo[1].Preflights = []string{"X"}
		guard := actionstest.NewPreflight(actions.Abandon("it is back"))
		w.requestTest()
		r := w.Ready()
		k.during("c", func() {
			w.Cancel(r)
			<-time.After(time.Second)
		})
		r.Begin(w.guardedBy(k, guard), w.Record())
		w.Pass(time.Hour)
		if w.Ended() || w.Count("started undo") != 0 || w.Record().Holds["undo b"].Preflight != "X" {
			t.Errorf("the journal says %q", w.Story())
		}
		guard.SetVerdict(actions.Pass())
		r.End()
		if w.Count("done undo b") != 1 || w.Count("done undo a") != 1 || w.LastLine() != "ended cancelled changed my mind" {
			t.Errorf("the journal says %q", w.Story())
		}
	})
}

func TestAnActionWithAWayBackIsNotAbandonedPastItsPointOfNoReturnThoughNothingHappened(t *testing.T) {
	for name, back := range map[string]bool{"with a way back": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := undoable()
				k.steps[3].Preflights = []string{"X"}
				if !back {
					k.undo = nil
				}
				k.do = func(_ context.Context, id string) error {
					if id == "last" {
						return errBroken
					}
					return nil
				}
				k.prove = func(_ context.Context, id string) (bool, error) {
					return id != "last" && slices.Contains(k.calls(), id), nil
				}
				definition := k.definition()
				definition.Steps = map[string]actions.StepDef{"act": {Step: k, Atomic: true}}
				guard := actionstest.NewPreflight(actions.Pass())
				w.requestTest()
				cfg := actionstest.With(w.Config([]actions.Definition{definition}), map[string]actions.Preflight{"X": guard})
				r := w.Start(cfg)
				w.Pass(5 * time.Second)
				guard.SetVerdict(actions.Abandon("it is back"))
				w.Pass(time.Hour)
				r.Halt()
				if w.Count("failed last") == 0 || w.Ended() == back {
					t.Errorf("the journal says %q", w.Story())
				}
			})
		})
	}
}

func TestTheWayBackDoesNotWaitForWhatTheWayThereWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights, k.undo[0].Preflights = []string{"X"}, []string{"X"}
		guard := actionstest.NewPreflight(actions.Hold("not yet"))
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(time.Hour)
		for asked := guard.Calls(); guard.Calls() == asked; {
			w.Pass(100 * time.Millisecond)
		}
		guard.SetVerdict(actions.Pass()) // it has just been asked, and rests
		w.Cancel(r)
		if took := r.End(); took > time.Second || w.Count("done undo a") != 1 {
			t.Errorf("it turned back after %s: %q", took, w.Story())
		}
	})
}
