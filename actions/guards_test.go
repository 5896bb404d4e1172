package actions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// rules returns the preflights of policy, all of which pass until they are
// turned.
func rules() (dials map[string]*actionstest.SettablePreflight, preflights map[string]actions.Preflight) {
	dials, preflights = map[string]*actionstest.SettablePreflight{}, map[string]actions.Preflight{}
	for _, name := range standing() {
		dials[name] = actionstest.NewPreflight(actions.Pass())
		preflights[name] = dials[name]
	}
	return dials, preflights
}

func TestEveryRuleOfPolicyStopsAnAutomaticActionBetweenAnyTwoSteps(t *testing.T) {
	for _, rule := range standing() {
		t.Run(rule, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				dials, preflights := rules()
				// The plan lists no rule, as those of older versions do.
				interrupted(w, step("a"), step("b", "a"), irreversible(step("c", "b")))
				against := actions.Hold("not now")
				dials[rule].SetVerdict(against)
				k := &script{do: func(context.Context, string) error { dials[rule].SetVerdict(against); return nil }}
				r := w.Start(actionstest.With(w.Config(k.kinds()), preflights))
				for done := range 3 {
					w.Pass(time.Minute)
					if got := k.calls(); len(got) != done {
						t.Fatalf("did %q though %s is against it, want %d steps", got, rule, done)
					}
					dials[rule].SetVerdict(actions.Pass())
					r.Inbox.Recheck()
				}
				r.End()
			})
		})
	}
}

// warned has a rule answer a person with a warning and EKCO with a hold, as fsm does.
type warned struct {
	by *actionstest.SettablePreflight
}

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
				dials["StormBrake"].SetVerdict(actions.Hold("half the nodes are away"))
				preflights["StormBrake"] = warned{dials["StormBrake"]}
				held := step("a")
				held.Preflights = []string{"StormBrake"}
				k := &script{steps: []journal.PlannedStep{held}}
				w.requestTest()
				cfg := actionstest.With(w.Config(k.kinds()), preflights)
				r := w.Start(cfg)
				w.Pass(6 * time.Hour)
				if len(k.calls()) != 0 {
					t.Fatalf("did %q though policy is against it", k.calls())
				}
				if restarted {
					r.Halt()
				}
				w.Append("cli:me@here", journal.ActionJoined{Reason: "its rack is wanted"}, journal.TypeActionJoined)
				if restarted {
					r = w.Start(cfg)
				} else {
					w.Tell(r, journal.TypeActionJoined)
				}
				if took := r.End(); took > time.Second {
					t.Errorf("it went on after %s", took)
				}
				if !slices.Contains(k.calls(), "a") || w.Count("warned") != 1 {
					t.Errorf("did %q; %q", k.calls(), w.Story())
				}
			})
		})
	}
}

// What else warns holds what EKCO began by itself, also once a person has joined.
func TestWhoJoinsLiftsNothingButPolicy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, preflights := rules()
		preflights["CephHealthy"] = actionstest.Always(actions.Warn("Ceph recovers"))
		held := step("a")
		held.Preflights = []string{"CephHealthy"}
		k := &script{steps: []journal.PlannedStep{held}}
		w.requestTest()
		w.Append("cli:me@here", journal.ActionJoined{}, journal.TypeActionJoined)
		r := w.Start(actionstest.With(w.Config(k.kinds()), preflights))
		w.Pass(time.Hour)
		if len(k.calls()) != 0 {
			t.Errorf("did %q", k.calls())
		}
		r.Halt()
	})
}

func TestOfPolicyOnlySafeModeIsAskedBeforeThePlainStepsOfAPersonsAction(t *testing.T) {
	for name, joined := range map[string]bool{"who asked for it": false, "who joined it": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				dials, preflights := rules()
				k := &script{steps: []journal.PlannedStep{step("a")}}
				w.Request(testSubject, journal.ActionRequested{Kind: testKind, Manual: !joined})
				if joined {
					w.Append("cli:me@here", journal.ActionJoined{}, journal.TypeActionJoined)
				}
				w.RunToEnd(actionstest.With(w.Config(k.kinds()), preflights))
				for rule, asked := range dials {
					if want := rule == "SafeMode"; (asked.Calls() > 0) != want {
						t.Errorf("%s was asked %d times", rule, asked.Calls())
					}
				}
			})
		})
	}
}

func TestAnExplanationHasTheRulesThatAreAskedWhateverThePlanLists(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, preflights := rules()
		preflights["Paused"] = actionstest.Always(actions.Hold("paused"))
		k := &script{steps: []journal.PlannedStep{step("a")}}
		w.requestTest()
		_, checks, err := actions.NewRunner(actionstest.With(w.Config(k.kinds()), preflights)).Explain(t.Context(), w.Record())
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range standing() {
			at := slices.IndexFunc(checks, func(c actions.Check) bool { return c.Preflight == rule })
			if at < 0 || (checks[at].Verdict.Kind == actions.VerdictHold) != (rule == "Paused") {
				t.Errorf("%s is explained in %+v", rule, checks)
			}
		}
	})
}
