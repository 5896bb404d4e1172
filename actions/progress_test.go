package actions

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

// copying is a step that reports each object.
type copying struct{ copied int64 }

func (c *copying) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	for c.copied < 2 {
		c.copied++
		step.Report(ctx, Progress{Done: c.copied, Total: 2, Unit: "objects"})
	}
	return nil, nil
}

func (c *copying) Prove(context.Context, StepContext) (Proof, error) {
	return Proof{Done: c.copied == 2}, nil
}

func TestAStepReportsHowFarItHasComeToWhoWatches(t *testing.T) {
	step := StepContext{
		Action:  journal.ActionRecord{ID: "move-1"},
		Planned: journal.PlannedStep{ID: "copy-objects"}, Log: slog.New(slog.DiscardHandler),
	}
	var got []Progress
	watched := Watched(t.Context(), func(action, id string, progress Progress) {
		if action != "move-1" || id != "copy-objects" {
			t.Errorf("reported by %s of %s", id, action)
		}
		got = append(got, progress)
	})
	// The runner cuts the work off from what ends the action.
	if result := attempt(context.WithoutCancel(watched), t.Context(), &copying{}, step); result.err != nil {
		t.Fatal(result.err)
	}
	if diff := cmp.Diff([]Progress{{Done: 1, Total: 2, Unit: "objects"}, {Done: 2, Total: 2, Unit: "objects"}}, got); diff != "" {
		t.Error(diff)
	}
	if result := attempt(t.Context(), t.Context(), &copying{}, step); result.err != nil {
		t.Errorf("a step that nobody watches fails: %v", result.err)
	}
}
