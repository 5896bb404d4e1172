package actions_test

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// interrupted puts an action on disk whose first step is open.
func interrupted(w *world, steps ...journal.PlannedStep) {
	w.requestTest()
	w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: steps}}, journal.TypeActionPlanned)
	w.Append("operator", journal.StepStarted{Step: steps[0].ID, Attempt: 1}, journal.TypeStepStarted)
}

func TestAnOpenStepIsProvedAndNotRepeatedWhenItHasHappened(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{plan: func() error { t.Error("it was planned again"); return nil }}
		k.prove = func(context.Context, string) (bool, error) { return true, nil }
		interrupted(w, step("a"), step("b", "a"))
		w.RunToEnd(w.Config(k.kinds()))
		w.WantStory("requested", "planned 2", "started a #1", "done a #1 already", "started b #1", "done b #1", "ended done")
		if got := k.calls(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("did %q", got)
		}
	})
}

func TestAnOpenStepIsRepeatedWhenItsProofIsDenied(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{} // the proof is that do was called
		interrupted(w, step("a"))
		w.RunToEnd(w.Config(k.kinds()))
		w.WantStory("requested", "planned 1", "started a #1", "started a #2", "done a #2", "ended done")
	})
}

func TestAnOpenStepWhoseProofCannotBeHadIsNotRepeatedBlindly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		begin := time.Now()
		k := &script{}
		k.prove = func(context.Context, string) (bool, error) {
			if time.Since(begin) < 10*time.Second {
				return false, errBroken
			}
			return true, nil
		}
		interrupted(w, step("a"))
		w.RunToEnd(w.Config(k.kinds()))
		if len(k.calls()) != 0 {
			t.Errorf("did %q", k.calls())
		}
		if w.Count("failed a #1") == 0 || w.Count("done a #1 already") != 1 {
			t.Errorf("the journal says %q", w.Story())
		}
	})
}

func TestAStopLetsARunningStepFinishWithinTheGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}
		k.do = func(context.Context, string) error { <-time.After(7 * time.Second); return nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Second)
		r.Stop()
		if err := r.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		w.WantStory("requested", "planned 2", "started a #1", "done a #1")
	})
}

func TestAStepThatOutlastsTheGraceIsLeftOpenAndNotFailed(t *testing.T) {
	for name, do := range map[string]func(context.Context) error{
		"heeds the end": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"fails by it":   func(ctx context.Context) error { <-time.After(3 * time.Second); return errBroken },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{step("a")}}
				k.do = func(ctx context.Context, _ string) error { return do(ctx) }
				w.requestTest()
				r := w.Start(w.Config(k.kinds()))
				w.Pass(time.Second)
				begin := time.Now()
				r.Stop()
				if err := r.Wait(); !errors.Is(err, context.Canceled) {
					t.Errorf("Run returned %v", err)
				}
				if took := time.Since(begin); took > 8*time.Second {
					t.Errorf("stopping took %s, want the grace of 8s at most", took)
				}
				w.WantStory("requested", "planned 1", "started a #1")
				if !w.Record().Steps["a"].Open {
					t.Error("the step is not open")
				}
			})
		})
	}
}

func TestAStopEndsAnIdleRunAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, actionstest.Always(actions.Hold("no"))))
		w.Pass(time.Minute)
		begin := time.Now()
		r.Stop()
		if err := r.Wait(); !errors.Is(err, context.Canceled) || time.Since(begin) > 0 {
			t.Errorf("Run returned %v after %s", err, time.Since(begin))
		}
	})
}

func TestNothingIsDoneWhileTheJournalCannotBeWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}
		k.do = func(_ context.Context, id string) error {
			if id == "a" {
				w.Store.Break(syscall.ENOSPC)
			}
			return nil
		}
		w.requestTest()
		err := w.Start(w.Config(k.kinds())).Wait()
		if !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Run returned %v", err)
		}
		if unrecorded, ok := errors.AsType[*actions.UnrecordedError](err); !ok || unrecorded.What != "a is done" {
			t.Errorf("does not say what has happened: %v", err)
		}
		for range 3 {
			if err := w.Start(w.Config(k.kinds())).Wait(); !errors.Is(err, journal.ErrUnwritable) {
				t.Fatalf("Run returned %v", err)
			}
		}
		if got := k.calls(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("did %q without a record", got)
		}
		w.Store.Break(nil)
		w.RunToEnd(w.Config(k.kinds()))
		w.WantStory("requested", "planned 2", "started a #1", "done a #1 already", "started b #1", "done b #1", "ended done")
	})
}
