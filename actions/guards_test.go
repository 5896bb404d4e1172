package actions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// rules returns the preflights of policy, all of which pass until they are
// turned.
func rules() (dials map[string]*dial, preflights map[string]actions.Preflight) {
	dials, preflights = map[string]*dial{}, map[string]actions.Preflight{}
	for _, name := range actions.StandingPolicy(journal.ActionRecord{}) {
		dials[name] = answering(actions.Pass())
		preflights[name] = dials[name]
	}
	return dials, preflights
}

func TestEveryRuleOfPolicyStopsAnAutomaticActionBetweenAnyTwoSteps(t *testing.T) {
	for _, rule := range actions.StandingPolicy(journal.ActionRecord{}) {
		t.Run(rule, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				dials, preflights := rules()
				// The plan lists no rule, as those of older versions do.
				interrupted(w, step("a"), step("b", "a"), irreversible(step("c", "b")))
				against := actions.Hold("not now")
				dials[rule].turn(against)
				k := &script{do: func(context.Context, string) error { dials[rule].turn(against); return nil }}
				r := w.start(withPreflights(w.config(k.kinds()), preflights))
				for done := range 3 {
					letPass(time.Minute)
					if got := k.calls(); len(got) != done {
						t.Errorf("did %q though %s is against it, want %d steps", got, rule, done)
					}
					dials[rule].turn(actions.Pass())
					r.signals <- actions.SignalRecheck
				}
				r.end()
			})
		})
	}
}

func TestOfPolicyOnlySafeModeIsAskedBeforeThePlainStepsOfAPersonsAction(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		dials, preflights := rules()
		k := &script{steps: []journal.PlannedStep{step("a")}}
		w.request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
		w.runToEnd(withPreflights(w.config(k.kinds()), preflights))
		for rule, asked := range dials {
			if want := rule == "SafeMode"; (asked.called() > 0) != want {
				t.Errorf("%s was asked %d times", rule, asked.called())
			}
		}
	})
}

func TestAnExplanationHasTheRulesThatAreAskedWhateverThePlanLists(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, preflights := rules()
		preflights["Paused"] = always(actions.Hold("paused"))
		k := &script{steps: []journal.PlannedStep{step("a")}}
		w.requestTest()
		_, checks, err := actions.NewRunner(withPreflights(w.config(k.kinds()), preflights)).Explain(t.Context(), w.record())
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range actions.StandingPolicy(w.record()) {
			at := slices.IndexFunc(checks, func(c actions.Check) bool { return c.Preflight == rule })
			if at < 0 || (checks[at].Verdict.Kind == actions.VerdictHold) != (rule == "Paused") {
				t.Errorf("%s is explained in %+v", rule, checks)
			}
		}
	})
}
