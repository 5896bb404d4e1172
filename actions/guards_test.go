package actions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// everyRule lists what keeps EKCO from going on by itself. It is written out here,
// so that a rule that is dropped from the list which is tested does not leave the
// tests with it.
var everyRule = []string{
	"SafeMode", "APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime",
}

// rules returns the preflights of policy, all of which pass until they are
// turned.
func rules() (dials map[string]*dial, preflights map[string]actions.Preflight) {
	dials, preflights = map[string]*dial{}, map[string]actions.Preflight{}
	for _, name := range everyRule {
		dials[name] = answering(actions.Pass())
		preflights[name] = dials[name]
	}
	return dials, preflights
}

func TestEveryRuleOfPolicyStopsAnAutomaticActionBetweenAnyTwoSteps(t *testing.T) {
	for _, rule := range everyRule {
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
						t.Fatalf("did %q though %s is against it, want %d steps", got, rule, done)
					}
					dials[rule].turn(actions.Pass())
					r.inbox.Recheck()
				}
				r.end()
			})
		})
	}
}

// warned has a rule answer a person with a warning and EKCO with a hold, as fsm does.
type warned struct{ by *dial }

func (w warned) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	verdict := w.by.Check(ctx, record)
	if verdict.Kind == actions.VerdictHold && record.ByPerson() {
		return actions.Warn(verdict.Reason)
	}
	return verdict
}

func TestPolicyWarnsWhereItHeldOnceAPersonHasJoined(t *testing.T) {
	for name, restarted := range map[string]bool{"while it runs": false, "and EKCO restarts": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				dials, preflights := rules()
				dials["StormBrake"].turn(actions.Hold("half the nodes are away"))
				preflights["StormBrake"] = warned{dials["StormBrake"]}
				held := step("a")
				held.Preflights = []string{"StormBrake"}
				k := &script{steps: []journal.PlannedStep{held}}
				w.requestTest()
				cfg := withPreflights(w.config(k.kinds()), preflights)
				r := w.start(cfg)
				letPass(6 * time.Hour)
				if len(k.calls()) != 0 {
					t.Fatalf("did %q though policy is against it", k.calls())
				}
				if restarted {
					r.halt()
				}
				w.append("cli:me@here", journal.ActionJoined{Reason: "its rack is wanted"}, journal.TypeActionJoined)
				if restarted {
					r = w.start(cfg)
				} else {
					w.tell(r, journal.TypeActionJoined)
				}
				if took := r.end(); took > time.Second {
					t.Errorf("it went on after %s", took)
				}
				if !slices.Contains(k.calls(), "a") || w.count("warned") != 1 {
					t.Errorf("did %q; %q", k.calls(), w.story())
				}
			})
		})
	}
}

// What else warns holds what EKCO began by itself, also once a person has joined.
func TestWhoJoinsLiftsNothingButPolicy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, preflights := rules()
		preflights["CephHealthy"] = always(actions.Warn("Ceph recovers"))
		held := step("a")
		held.Preflights = []string{"CephHealthy"}
		k := &script{steps: []journal.PlannedStep{held}}
		w.requestTest()
		w.append("cli:me@here", journal.ActionJoined{}, journal.TypeActionJoined)
		r := w.start(withPreflights(w.config(k.kinds()), preflights))
		letPass(time.Hour)
		if len(k.calls()) != 0 {
			t.Errorf("did %q", k.calls())
		}
		r.halt()
	})
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
		for _, rule := range everyRule {
			at := slices.IndexFunc(checks, func(c actions.Check) bool { return c.Preflight == rule })
			if at < 0 || (checks[at].Verdict.Kind == actions.VerdictHold) != (rule == "Paused") {
				t.Errorf("%s is explained in %+v", rule, checks)
			}
		}
	})
}
