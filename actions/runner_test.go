package actions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestAnActionIsPlannedOnceAndItsStepsRunInTheOrderOfTheirDependencies(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("third", "second"), step("first"), step("second", "first")}}
		w.requestTest()
		w.RunToEnd(w.Config(k.kinds()))
		w.WantStory("requested", "planned 3",
			"started first #1", "done first #1", "started second #1", "done second #1",
			"started third #1", "done third #1", "ended done")
	})
}

func TestAStepIsOnDiskAsStartedBeforeItsEffect(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a"), step("b"), step("c", "a")}}
		k.do = func(_ context.Context, id string) error {
			if !slices.Contains(w.Story(), "started "+id+" #1") {
				t.Errorf("the effect of %s began without a record", id)
			}
			return nil
		}
		w.requestTest()
		w.RunToEnd(w.Config(k.kinds()))
		if got := len(k.calls()); got != 3 {
			t.Errorf("%d effects, want 3", got)
		}
	})
}

func TestAStepIsDoneOnlyOnceItsProofIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		begin := time.Now()
		k := &script{steps: []journal.PlannedStep{step("a")}}
		k.prove = func(context.Context, string) (bool, error) { return time.Since(begin) > 10*time.Second, nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(9 * time.Second)
		w.WantStory("requested", "planned 1", "started a #1")
		r.End()
		w.WantStory("requested", "planned 1", "started a #1", "done a #1", "ended done")
	})
}

func TestAPlanningErrorIsAVisibleHoldAndIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tries := 0
		k := &script{steps: []journal.PlannedStep{step("a")}, plan: func() error {
			if tries++; tries < 4 {
				return fmt.Errorf("try %d: %w", tries, errBroken)
			}
			return nil
		}}
		w.requestTest()
		w.RunToEnd(w.Config(k.kinds()))
		w.WantStory("requested", `held "" by Plan`, `released "" by Plan`, "planned 1", "started a #1", "done a #1", "ended done")
	})
}

func TestAPlanThatCanNeverBeFinishedIsNotBegun(t *testing.T) {
	for name, steps := range map[string][]journal.PlannedStep{
		"two steps of one id":          {step("a"), step("a")},
		"a step after one that is not": {step("a", "nothing")},
		"steps in a circle":            {step("a", "b"), step("b", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: steps}
				w.requestTest()
				r := w.Start(w.Config(k.kinds()))
				synctest.Wait()
				r.Stop()
				if err := r.Wait(); !errors.Is(err, context.Canceled) {
					t.Errorf("Run returned %v", err)
				}
				w.WantStory("requested", `held "" by Plan`)
			})
		})
	}
}

func TestAPlanWithoutStepsIsDoneAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.requestTest()
		w.RunToEnd(w.Config((&script{}).kinds()))
		w.WantStory("requested", "planned 0", "ended done")
	})
}

func TestAStepThatFailsIsTriedAgainAndHasNoHandInOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tries := 0
		k := &script{steps: []journal.PlannedStep{step("bad"), step("good")}}
		k.do = func(_ context.Context, id string) error {
			if id == "bad" {
				if tries++; tries < 3 {
					return errBroken
				}
			}
			return nil
		}
		k.prove = func(_ context.Context, id string) (bool, error) { return id == "good" || tries >= 3, nil }
		w.requestTest()
		w.RunToEnd(w.Config(k.kinds()))
		if story := w.Story(); slices.Index(story, "done good #1") > slices.Index(story, "failed bad #1")+1 {
			t.Errorf("the good step waited for the bad one: %q", story)
		}
		if got := w.Count("failed bad"); got != 2 {
			t.Errorf("%d failures, want 2", got)
		}
		if got := w.LastLine(); got != "ended done" {
			t.Errorf("the action %s", got)
		}
	})
}

func TestRestsBetweenAttemptsGrowAndAreOnRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var at []time.Time
		k := &script{steps: []journal.PlannedStep{step("a")}}
		k.do = func(context.Context, string) error { at = append(at, time.Now()); return errBroken }
		k.prove = func(context.Context, string) (bool, error) { return false, nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Hour)
		r.Stop()
		if err := r.Wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if len(at) != 10 {
			t.Fatalf("%d attempts, want the budget of 10", len(at))
		}
		for i, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 120, 120} {
			want := time.Duration(seconds) * time.Second
			if rest := at[i+1].Sub(at[i]); rest < want*8/10-time.Millisecond || rest > want*12/10+time.Millisecond {
				t.Errorf("rest %d was %s, want %s give or take 20 %%", i+1, rest, want)
			}
		}
	})
}

func TestTheDeadlineOfAStepIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tries := 0
		k := &script{steps: []journal.PlannedStep{step("a")}}
		k.do = func(ctx context.Context, _ string) error {
			if tries++; tries == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		k.prove = func(context.Context, string) (bool, error) { return tries == 2, nil }
		w.requestTest()
		begin := time.Now()
		w.RunToEnd(w.Config(k.kinds()))
		w.WantStory("requested", "planned 1", "started a #1", "failed a #1", "started a #2", "done a #2", "ended done")
		if took := time.Since(begin); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("took %s, want the timeout of 1m and a rest", took)
		}
		if text := w.failure(); !strings.Contains(text, "no success within 1m0s") {
			t.Errorf("the failure says %q", text)
		}
	})
}

// failure returns the text of the first failure.
func (w *world) failure() string {
	for _, event := range w.Events() {
		if payload, err := event.Decode(); err == nil {
			if failed, ok := payload.(*journal.StepFailed); ok {
				return failed.Error
			}
		}
	}
	return ""
}

func TestManyStepsRunSixteenAtOnceAndShareTheirAppends(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{do: func(context.Context, string) error { <-time.After(time.Second); return nil }}
		for i := range 100 {
			k.steps = append(k.steps, step(fmt.Sprint(i)))
		}
		w.requestTest()
		counting := &actionstest.CountingStore{Store: w.Store}
		cfg := w.Config(k.kinds())
		cfg.Store = counting
		begin := time.Now()
		w.RunToEnd(cfg)
		if k.most != 16 {
			t.Errorf("%d steps ran at once, want 16", k.most)
		}
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("took %s, want 7 rounds of 1s", took)
		}
		if got := counting.Appends(); got > 40 {
			t.Errorf("%d appends for 100 steps", got)
		}
	})
}

func TestEveryLogLineOfAnActionCarriesItsID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		tries := 0
		k := &script{steps: []journal.PlannedStep{step("a")}, do: func(context.Context, string) error {
			if tries++; tries == 1 {
				return errBroken
			}
			return nil
		}}
		k.prove = func(context.Context, string) (bool, error) { return tries == 2, nil }
		w.requestTest()
		w.RunToEnd(w.Config(k.kinds()))
		lines := strings.Split(strings.TrimSpace(w.Logged()), "\n")
		if len(lines) < 6 {
			t.Fatalf("only %d lines: %q", len(lines), lines)
		}
		for _, line := range lines {
			if !strings.Contains(line, "action="+actionstest.ActionID) {
				t.Errorf("no action id: %s", line)
			}
			if strings.Contains(line, `msg="step `) && !strings.Contains(line, "step=a") {
				t.Errorf("no step id: %s", line)
			}
		}
	})
}

func TestAnEndedActionIsNotRunAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a")}}
		w.requestTest()
		record := w.Record()
		record.Ended = &journal.ActionEnded{Outcome: journal.OutcomeDone}
		if err := newRunner(w, k).Run(w.T.Context(), record, nil); err != nil {
			t.Fatal(err)
		}
		w.WantStory("requested")
	})
}
