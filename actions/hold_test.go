package actions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// guardedBy is a config in which the guard is preflight X of the script.
func (w *world) guardedBy(k *script, guard actions.Preflight) actions.Config {
	return actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"X": guard})
}

func TestAHoldIsRecordedOncePerPreflightAndReasonHoweverOftenItIsCheckedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		x, y := actionstest.NewPreflight(actions.Hold("not yet")), actionstest.NewPreflight(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X", "Y")}}
		w.requestTest()
		r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"X": x, "Y": y}))
		w.Pass(10 * time.Minute)
		if x.Calls() < 15 || x.Calls() > 30 {
			t.Errorf("%d checks in 10m, want one each 5s to 30s", x.Calls())
		}
		w.WantStory("requested", "planned 1", `held "a" by X`)
		x.SetVerdict(actions.Pass())
		y.SetVerdict(actions.Hold("now this"))
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 1", `held "a" by X`, `held "a" by Y`)
		y.SetVerdict(actions.Pass())
		r.End()
		w.WantStory("requested", "planned 1", `held "a" by X`, `held "a" by Y`, `released "a" by Y`,
			"started a #1", "done a #1", "ended done")
	})
}

func TestAHoldSaysItsNewReasonWhenThatChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Hold("the disk is full"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		w.requestTest()
		reason := func() string {
			r := w.Start(cfg)
			w.Pass(time.Minute)
			r.Halt()
			return w.Record().Holds["a"].Reason
		}
		for _, why := range []string{"the disk is full", "the disk is gone", "the machine is gone"} {
			guard.SetVerdict(actions.Hold(why))
			if got := reason(); !strings.HasPrefix(got, why) {
				t.Errorf("after a restart the hold says %q, want %q", got, why)
			}
		}
		r := w.Start(cfg)
		w.Pass(time.Minute)
		guard.SetVerdict(actions.Hold("a bird has nested in it"))
		w.Pass(time.Minute)
		if got := w.Record().Holds["a"].Reason; !strings.HasPrefix(got, "a bird") {
			t.Errorf("the hold says %q", got)
		}
		r.Halt()
	})
}

func TestAReasonThatKeepsChangingIsRecordedNowAndThen(t *testing.T) {
	for name, verdict := range map[string]func(call int) actions.Verdict{
		"details": func(call int) actions.Verdict {
			return actions.Hold(fmt.Sprintf("osd.%d: %s ago, at 10.0.0.1:%d", call, time.Duration(call)*time.Second, call))
		},
		"two keys": func(call int) actions.Verdict {
			said := []string{"it is raining", "it is snowing"}[call%2]
			return actions.Hold(said).About(said)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				calls := 0
				k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
				w.requestTest()
				r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
					"X": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
						calls++
						return verdict(calls)
					}),
				}))
				w.Pass(24 * time.Hour)
				r.Halt()
				if got := w.Count(`held "a" by X`); got < 20 || got > 35 || calls < 2000 {
					t.Errorf("recorded %d times in a day of %d checks", got, calls)
				}
			})
		})
	}
}

func TestPreflightsRunAgainBeforeEachRepeatOfAStep(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		k.do = func(context.Context, string) error {
			guard.SetVerdict(actions.Hold("changed my mind"))
			return errBroken
		}
		k.prove = func(context.Context, string) (bool, error) { return false, nil }
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(time.Minute)
		r.Stop()
		if err := r.Wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.WantStory("requested", "planned 1", "started a #1", "failed a #1", `held "a" by X`)
	})
}

func TestAHeldStepDoesNotStopOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X"), step("b")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(time.Second)
		if w.Count(`held "a" by X`) != 1 || w.Count("done b #1") != 1 {
			t.Errorf("the journal says %q", w.Story())
		}
		guard.SetVerdict(actions.Pass())
		r.End()
	})
}

func TestAnEffectThatIsThereNeedsNoPreflight(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		k.do = func(context.Context, string) error { guard.SetVerdict(actions.Hold("no")); return errBroken }
		w.requestTest() // the proof is that do was called
		w.RunToEnd(w.guardedBy(k, guard))
		w.WantStory("requested", "planned 1", "started a #1", "failed a #1", "done a #1 already", "ended done")
	})
}

func TestAPreflightNobodyKnowsHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "FromTheFuture")}}
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Minute)
		r.Halt()
		w.WantStory("requested", "planned 1", `held "a" by FromTheFuture`)
	})
}

func TestAnAbandonEndsTheActionBeforeAnyEffect(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X", "Y")}}
		w.requestTest()
		w.RunToEnd(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
			"X": actionstest.Always(actions.Hold("not yet")), "Y": actionstest.Always(actions.Abandon("no reason left")),
		}))
		w.WantStory("requested", "planned 1", "ended abandoned no reason left")
	})
}

func TestPastThePointOfNoReturnAnAbandonHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Pass())
		a := guarded("a", "X")
		a.Irreversible = true
		k := &script{steps: []journal.PlannedStep{a}}
		tries := 0
		k.do = func(context.Context, string) error {
			if tries++; tries == 1 {
				guard.SetVerdict(actions.Verdict{Kind: actions.VerdictAbandon, Reason: "no reason left", Advice: "pull the plug"})
				return errBroken
			}
			return nil
		}
		k.prove = func(context.Context, string) (bool, error) { return tries == 2, nil }
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 1", "started a #1", "failed a #1", `held "a" by X`)
		if reason := w.Record().Holds["a"].Reason; !strings.Contains(reason, "past its point of no return") || !strings.HasSuffix(reason, ": pull the plug") {
			t.Errorf("the hold says %q", reason)
		}
		guard.SetVerdict(actions.Pass())
		r.End()
	})
}

func TestWarningsOfAManualActionAreRecordedOnceAndItGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		request  journal.ActionRequested
		answered bool
		want     string
	}{
		"nobody to ask":          {journal.ActionRequested{Kind: testKind, Manual: true}, false, "warned X: careful (no terminal)"},
		"forced":                 {journal.ActionRequested{Kind: testKind, Manual: true, Force: true}, false, "warned X: careful (--force)"},
		"answered on a terminal": {journal.ActionRequested{Kind: testKind, Manual: true}, true, "warned X: careful (yes)"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{guarded("a", "X"), guarded("b", "X")}}
				w.Request(testSubject, test.request)
				if test.answered {
					w.Append("cli:me@here", journal.ActionWarned{Preflight: "X", Warning: "careful", Answer: "yes"}, journal.TypeActionWarned)
				}
				w.RunToEnd(w.guardedBy(k, actionstest.Always(actions.Warn("careful"))))
				if got := w.Count("warned"); got != 1 || w.Count(test.want) != 1 {
					t.Errorf("the journal says %q, want one %q", w.Story(), test.want)
				}
				if got := w.LastLine(); got != "ended done" {
					t.Errorf("the action %s", got)
				}
			})
		})
	}
}

func TestAWarningHoldsAnAutomaticAction(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, actionstest.Always(actions.Warn("careful"))))
		synctest.Wait()
		r.Halt()
		w.WantStory("requested", "planned 1", `held "a" by X`)
	})
}

// TestAHoldSaysWhenItNeedsAPerson: also a hold that was recorded without it.
func TestAHoldSaysWhenItNeedsAPerson(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		for _, grace := range []time.Duration{0, time.Hour} {
			careful := actions.Warn("careful")
			careful.Grace = grace
			r := w.Start(w.guardedBy(k, actionstest.Always(careful)))
			w.Pass(time.Hour)
			r.Halt()
			if held := w.Record().Holds["a"]; time.Duration(held.NeedsPersonAfter) != grace {
				t.Errorf("held by %+v", held)
			}
		}
	})
}

func TestAHoldOnRecordIsReleasedByTheNextRunWithoutBeingRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		w.requestTest()
		for range 3 {
			r := w.Start(cfg)
			w.Pass(time.Minute)
			r.Halt()
		}
		guard.SetVerdict(actions.Pass())
		w.RunToEnd(cfg)
		w.WantStory("requested", "planned 1", `held "a" by X`, `released "a" by X`, "started a #1", "done a #1", "ended done")
	})
}

func TestWhatThisEKCODoesNotUnderstandIsHeldAndUntouched(t *testing.T) {
	for name, change := range map[string]func(*journal.ActionRecord){
		"an event":          func(r *journal.ActionRecord) { r.Unreadable = "event 7 (step.frobbed): unknown event type" },
		"a kind of action":  func(r *journal.ActionRecord) { r.Kind = "frobnicate" },
		"a kind of step":    func(r *journal.ActionRecord) { r.Plan.Steps[0].Does = "frob" },
		"a cancelled event": func(r *journal.ActionRecord) { r.Unreadable = "x"; r.Cancelling = &journal.ActionCancelling{} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{step("a")}}
				w.requestTest()
				w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
				record := w.Record()
				change(&record)
				ctx, stop := context.WithTimeout(w.T.Context(), time.Hour)
				defer stop()
				err := newRunner(w, k).Run(ctx, record, nil)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Run returned %v", err)
				}
				w.WantStory("requested", "planned 1", `held "" by Readable`)
				if len(k.calls()) != 0 {
					t.Errorf("it did %q", k.calls())
				}
			})
		})
	}
}
