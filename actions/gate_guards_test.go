package actions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func TestWhatAsksLessThanTheGateIsNotTakenForIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		looks, gate := answering(actions.Hold("not yet")), answering(actions.Pass())
		destroys := step("destroys", "looks")
		destroys.Irreversible = true
		k := &script{}
		k.steps = actions.BehindGate([]journal.PlannedStep{guarded("looks", "X"), destroys}, []string{"Y"})
		w.requestTest()
		r := w.start(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{"X": looks, "Y": gate}))
		letPass(6 * time.Hour)
		gate.turn(actions.Hold("quorum would be lost"))
		looks.turn(actions.Pass())
		letPass(time.Hour)
		if hold := w.record().Holds["destroys"]; slices.Contains(k.calls(), "destroys") || hold.Preflight != "Y" {
			t.Errorf("hours after the gate it did %q, held by %+v; %q", k.calls(), hold, w.story())
		}
		gate.turn(actions.Pass())
		r.end()
	})
}

func TestWhetherAnAnswerLastsIsLookedAtOftenHoweverLongTheStepWasHeldBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		x := answering(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.start(w.guardedBy(k, x))
		letPass(6 * time.Hour)
		before := x.called()
		x.turn(actions.PassBecause("it cannot recover").OnceLasting(40*time.Second, "it cannot recover"))
		r.end()
		if asked := x.called() - before; asked < 5 {
			t.Errorf("in 40s it was asked %d times", asked)
		}
	})
}
