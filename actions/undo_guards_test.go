package actions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
)

func TestWhatLosesItsReasonAgainOnItsWayBackIsTakenBackAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.undo[1].Preflights = []string{"X"}
		guard := answering(actions.Abandon("it is back"))
		w.requestTest()
		r := w.ready()
		k.during("c", func() {
			w.cancelBy(r)
			<-time.After(time.Second)
		})
		r.begin(w.guardedBy(k, guard), w.record())
		letPass(time.Hour)
		if w.ended() || w.count("started undo") != 0 || w.record().Holds["undo b"].Preflight != "X" {
			t.Errorf("the journal says %q", w.story())
		}
		guard.turn(actions.Pass())
		r.end()
		if w.count("done undo b") != 1 || w.count("done undo a") != 1 || w.lastLine() != "ended cancelled changed my mind" {
			t.Errorf("the journal says %q", w.story())
		}
	})
}

// atomicScript is a script whose steps are single calls that their proofs see.
type atomicScript struct{ *script }

func (atomicScript) Atomic() bool { return true }

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
				definition.Steps = map[string]actions.Step{"act": atomicScript{k}}
				guard := answering(actions.Pass())
				w.requestTest()
				cfg := withPreflights(w.config([]actions.Definition{definition}), map[string]actions.Preflight{"X": guard})
				r := w.start(cfg)
				letPass(5 * time.Second)
				guard.turn(actions.Abandon("it is back"))
				letPass(time.Hour)
				r.halt()
				if w.count("failed last") == 0 || w.ended() == back {
					t.Errorf("the journal says %q", w.story())
				}
			})
		})
	}
}

func TestTheWayBackDoesNotWaitForWhatTheWayThereWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := undoable()
		k.steps[1].Preflights, k.undo[0].Preflights = []string{"X"}, []string{"X"}
		guard := answering(actions.Hold("not yet"))
		w.requestTest()
		r := w.start(w.guardedBy(k, guard))
		letPass(time.Hour)
		for asked := guard.called(); guard.called() == asked; {
			letPass(100 * time.Millisecond)
		}
		guard.turn(actions.Pass()) // it has just been asked, and rests
		w.cancelBy(r)
		if took := r.end(); took > time.Second || w.count("done undo a") != 1 {
			t.Errorf("it turned back after %s: %q", took, w.story())
		}
	})
}
