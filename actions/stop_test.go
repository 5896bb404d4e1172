package actions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestAStopLeavesAStepThatOnlyWaitsForItsProofOpenAtOnce(t *testing.T) {
	for name, prove := range map[string]func(context.Context) (bool, error){
		"between two looks": func(context.Context) (bool, error) { return false, nil },
		"within a look":     func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{step("a")}}
				k.prove = func(ctx context.Context, _ string) (bool, error) { return prove(ctx) }
				w.requestTest()
				r := w.Start(w.Config(k.kinds()))
				w.Pass(10 * time.Second)
				begin := time.Now()
				r.Stop()
				if err := r.Wait(); !errors.Is(err, context.Canceled) {
					t.Errorf("Run returned %v", err)
				}
				if took := time.Since(begin); took > 0 {
					t.Errorf("stopping took %s, want none: nothing is being changed", took)
				}
				w.WantStory("requested", "planned 1", "started a #1")
				if !w.Record().Steps["a"].Open {
					t.Error("the step is not open")
				}
			})
		})
	}
}

func TestAnEffectThatEndsWithinTheGraceIsLookedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		looks := 0
		k := &script{steps: []journal.PlannedStep{step("a")}}
		k.do = func(context.Context, string) error { <-time.After(5 * time.Second); return nil }
		k.prove = func(context.Context, string) (bool, error) { looks++; return false, nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Second)
		begin := time.Now()
		r.Stop()
		if err := r.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(begin); took != 4*time.Second || looks != 1 {
			t.Errorf("stopping took %s with %d looks, want the effect's 4s and one look", took, looks)
		}
		if !w.Record().Steps["a"].Open {
			t.Error("the step is not open")
		}
	})
}

func TestACancelledActionStillWaitsForTheProofOfWhatItDid(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		begin := time.Now()
		k := &script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}
		k.prove = func(context.Context, string) (bool, error) { return time.Since(begin) > 10*time.Second, nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(time.Second)
		w.cancel("cli:me@here", "enough")
		w.Tell(r, journal.TypeActionCancelling)
		r.End()
		w.WantStory("requested", "planned 2", "started a #1", "cancelling", "done a #1", "ended cancelled enough")
	})
}
