package actions_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// dial is a preflight whose answer can be turned, and which counts its calls.
type dial struct {
	mu      sync.Mutex
	verdict actions.Verdict
	calls   int
}

func answering(verdict actions.Verdict) *dial { return &dial{verdict: verdict} }

func (d *dial) turn(verdict actions.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verdict = verdict
}

func (d *dial) called() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func (d *dial) Check(context.Context, journal.ActionRecord) actions.Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.verdict.Kind == actions.VerdictHold {
		return actions.Hold(fmt.Sprintf("%s (%d)", d.verdict.Reason, d.calls)).About(d.verdict.Reason)
	}
	return d.verdict
}

// withPreflights adds to the config's preflights, in which all of policy passes.
func withPreflights(cfg actions.Config, preflights map[string]actions.Preflight) actions.Config {
	maps.Copy(cfg.Preflights, preflights)
	return cfg
}

// guardedBy is a config in which the guard is preflight X of the script.
func (w *world) guardedBy(k *script, guard actions.Preflight) actions.Config {
	return withPreflights(w.config(k.kinds()), map[string]actions.Preflight{"X": guard})
}

func TestAHoldIsRecordedOncePerPreflightAndReasonHoweverOftenItIsCheckedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		x, y := answering(actions.Hold("not yet")), answering(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X", "Y")}}
		w.requestTest()
		r := w.start(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{"X": x, "Y": y}))
		letPass(10 * time.Minute)
		if x.called() < 15 || x.called() > 30 {
			t.Errorf("%d checks in 10m, want one each 5s to 30s", x.called())
		}
		w.wantStory("requested", "planned 1", `held "a" by X`)
		x.turn(actions.Pass())
		y.turn(actions.Hold("now this"))
		letPass(time.Minute)
		w.wantStory("requested", "planned 1", `held "a" by X`, `held "a" by Y`)
		y.turn(actions.Pass())
		r.end()
		w.wantStory("requested", "planned 1", `held "a" by X`, `held "a" by Y`, `released "a" by Y`,
			"started a #1", "done a #1", "ended done")
	})
}

func TestAHoldSaysItsNewReasonWhenThatChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Hold("the disk is full"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		w.requestTest()
		reason := func() string {
			r := w.start(cfg)
			letPass(time.Minute)
			r.halt()
			return w.record().Holds["a"].Reason
		}
		for _, why := range []string{"the disk is full", "the disk is gone", "the machine is gone"} {
			guard.turn(actions.Hold(why))
			if got := reason(); !strings.HasPrefix(got, why) {
				t.Errorf("after a restart the hold says %q, want %q", got, why)
			}
		}
		r := w.start(cfg)
		letPass(time.Minute)
		guard.turn(actions.Hold("a bird has nested in it"))
		letPass(time.Minute)
		if got := w.record().Holds["a"].Reason; !strings.HasPrefix(got, "a bird") {
			t.Errorf("the hold says %q", got)
		}
		r.halt()
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
				r := w.start(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{
					"X": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
						calls++
						return verdict(calls)
					}),
				}))
				letPass(24 * time.Hour)
				r.halt()
				if got := w.count(`held "a" by X`); got < 20 || got > 35 || calls < 2000 {
					t.Errorf("recorded %d times in a day of %d checks", got, calls)
				}
			})
		})
	}
}

func TestPreflightsRunAgainBeforeEachRepeatOfAStep(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		k.do = func(context.Context, string) error { guard.turn(actions.Hold("changed my mind")); return errBroken }
		k.prove = func(context.Context, string) (bool, error) { return false, nil }
		w.requestTest()
		r := w.start(w.guardedBy(k, guard))
		letPass(time.Minute)
		r.stop()
		if err := r.wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.wantStory("requested", "planned 1", "started a #1", "failed a #1", `held "a" by X`)
	})
}

func TestAHeldStepDoesNotStopOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X"), step("b")}}
		w.requestTest()
		r := w.start(w.guardedBy(k, guard))
		letPass(time.Second)
		if w.count(`held "a" by X`) != 1 || w.count("done b #1") != 1 {
			t.Errorf("the journal says %q", w.story())
		}
		guard.turn(actions.Pass())
		r.end()
	})
}

func TestAnEffectThatIsThereNeedsNoPreflight(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		k.do = func(context.Context, string) error { guard.turn(actions.Hold("no")); return errBroken }
		w.requestTest() // the proof is that do was called
		w.runToEnd(w.guardedBy(k, guard))
		w.wantStory("requested", "planned 1", "started a #1", "failed a #1", "done a #1 already", "ended done")
	})
}

func TestAPreflightNobodyKnowsHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "FromTheFuture")}}
		w.requestTest()
		r := w.start(w.config(k.kinds()))
		letPass(time.Minute)
		r.halt()
		w.wantStory("requested", "planned 1", `held "a" by FromTheFuture`)
	})
}

func TestAnAbandonEndsTheActionBeforeAnyEffect(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X", "Y")}}
		w.requestTest()
		w.runToEnd(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{
			"X": always(actions.Hold("not yet")), "Y": always(actions.Abandon("no reason left")),
		}))
		w.wantStory("requested", "planned 1", "ended abandoned no reason left")
	})
}

func TestPastThePointOfNoReturnAnAbandonHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Pass())
		a := guarded("a", "X")
		a.Irreversible = true
		k := &script{steps: []journal.PlannedStep{a}}
		tries := 0
		k.do = func(context.Context, string) error {
			if tries++; tries == 1 {
				guard.turn(actions.Verdict{Kind: actions.VerdictAbandon, Reason: "no reason left", Advice: "pull the plug"})
				return errBroken
			}
			return nil
		}
		k.prove = func(context.Context, string) (bool, error) { return tries == 2, nil }
		w.requestTest()
		r := w.start(w.guardedBy(k, guard))
		letPass(time.Minute)
		w.wantStory("requested", "planned 1", "started a #1", "failed a #1", `held "a" by X`)
		if reason := w.record().Holds["a"].Reason; !strings.Contains(reason, "past its point of no return") || !strings.HasSuffix(reason, ": pull the plug") {
			t.Errorf("the hold says %q", reason)
		}
		guard.turn(actions.Pass())
		r.end()
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
				w.request(testSubject, test.request)
				if test.answered {
					w.append("cli:me@here", journal.ActionWarned{Preflight: "X", Warning: "careful", Answer: "yes"}, journal.TypeActionWarned)
				}
				w.runToEnd(w.guardedBy(k, always(actions.Warn("careful"))))
				if got := w.count("warned"); got != 1 || w.count(test.want) != 1 {
					t.Errorf("the journal says %q, want one %q", w.story(), test.want)
				}
				if got := w.lastLine(); got != "ended done" {
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
		r := w.start(w.guardedBy(k, always(actions.Warn("careful"))))
		synctest.Wait()
		r.halt()
		w.wantStory("requested", "planned 1", `held "a" by X`)
	})
}

func TestAHoldOnRecordIsReleasedByTheNextRunWithoutBeingRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := answering(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		w.requestTest()
		for range 3 {
			r := w.start(cfg)
			letPass(time.Minute)
			r.halt()
		}
		guard.turn(actions.Pass())
		w.runToEnd(cfg)
		w.wantStory("requested", "planned 1", `held "a" by X`, `released "a" by X`, "started a #1", "done a #1", "ended done")
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
				w.append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
				record := w.record()
				change(&record)
				ctx, stop := context.WithTimeout(w.t.Context(), time.Hour)
				defer stop()
				err := newRunner(w, k).Run(ctx, record, nil)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Run returned %v", err)
				}
				w.wantStory("requested", "planned 1", `held "" by Readable`)
				if len(k.calls()) != 0 {
					t.Errorf("it did %q", k.calls())
				}
			})
		})
	}
}
