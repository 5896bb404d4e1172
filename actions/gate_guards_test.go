package actions_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestWhatAsksLessThanTheGateIsNotTakenForIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		looks, gate := actionstest.NewPreflight(actions.Hold("not yet")), actionstest.NewPreflight(actions.Pass())
		destroys := step("destroys", "looks")
		destroys.Irreversible = true
		k := &script{}
		k.steps = actions.BehindGate([]journal.PlannedStep{guarded("looks", "X"), destroys}, []string{"Y"})
		w.requestTest()
		r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"X": looks, "Y": gate}))
		w.Pass(6 * time.Hour)
		gate.SetVerdict(actions.Hold("quorum would be lost"))
		looks.SetVerdict(actions.Pass())
		w.Pass(time.Hour)
		if hold := w.Record().Holds["destroys"]; slices.Contains(k.calls(), "destroys") || hold.Preflight != "Y" {
			t.Errorf("hours after the gate it did %q, held by %+v; %q", k.calls(), hold, w.Story())
		}
		gate.SetVerdict(actions.Pass())
		r.End()
	})
}

// TestAStepIsAskedTheGateThoughItAsksTheSameAsOneThatIsNot: such steps become ready at
// the same moment, and are not looked at together.
func TestAStepIsAskedTheGateThoughItAsksTheSameAsOneThatIsNot(t *testing.T) {
	for name, differs := range map[string]func(*journal.PlannedStep){
		"it cannot be undone":  func(s *journal.PlannedStep) { s.Irreversible = true },
		"it changes something": func(s *journal.PlannedStep) { s.Preflights = standing() },
		"both":                 func(s *journal.PlannedStep) { s.Irreversible, s.Preflights = true, standing() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				looks, gate := actionstest.NewPreflight(actions.Hold("not yet")), actionstest.NewPreflight(actions.Pass())
				asks := step("asks", "looks")
				differs(&asks)
				k := &script{}
				k.steps = actions.BehindGate([]journal.PlannedStep{guarded("looks", "X"), step("plain", "looks"), asks}, []string{"Y"})
				w.requestTest()
				r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"X": looks, "Y": gate}))
				w.Pass(time.Hour)
				gate.SetVerdict(actions.Hold("quorum would be lost"))
				looks.SetVerdict(actions.Pass())
				r.Inbox.Recheck()
				w.Pass(time.Minute)
				if hold := w.Record().Holds["asks"]; hold.Preflight != "Y" || !slices.Equal(k.calls(), []string{"looks", "plain"}) {
					t.Errorf("it did %q, held by %+v; %q", k.calls(), hold, w.Story())
				}
				gate.SetVerdict(actions.Pass())
				r.End()
			})
		})
	}
}

func TestWhetherAnAnswerLastsIsLookedAtOftenHoweverLongTheStepWasHeldBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		x := actionstest.NewPreflight(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, x))
		w.Pass(6 * time.Hour)
		before := x.Calls()
		x.SetVerdict(actions.PassBecause("it cannot recover").OnceLasting(40*time.Second, "it cannot recover"))
		r.End()
		if asked := x.Calls() - before; asked < 5 {
			t.Errorf("in 40s it was asked %d times", asked)
		}
	})
}

// TestWhatOftenTakesSecondsIsLookedAtOftenForAMinute, and then as seldom as all else.
func TestWhatOftenTakesSecondsIsLookedAtOftenForAMinute(t *testing.T) {
	for brief, want := range map[bool][2]int{false: {4, 6}, true: {11, 14}} {
		t.Run(fmt.Sprint(brief), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				verdict := actions.Hold("not yet")
				if brief {
					verdict = verdict.Briefly()
				}
				x := actionstest.NewPreflight(verdict)
				k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
				w.requestTest()
				r := w.Start(w.guardedBy(k, x))
				w.Pass(time.Minute)
				if asked := x.Calls(); asked < want[0] || asked > want[1] {
					t.Errorf("brief %t: in a minute it was asked %d times", brief, asked)
				}
				w.Pass(5 * time.Minute)
				before := x.Calls()
				w.Pass(10 * time.Minute)
				if asked := x.Calls() - before; asked > 30 {
					t.Errorf("brief %t: later it was asked %d times in ten minutes", brief, asked)
				}
				x.SetVerdict(actions.Pass())
				r.End()
			})
		})
	}
}
