package actions_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// copying is a step that reports each object.
type copying struct{ copied int64 }

func (c *copying) Do(_ context.Context, step actions.StepContext) (json.RawMessage, error) {
	for c.copied < 2 {
		c.copied++
		step.Report(actions.Progress{Done: c.copied, Total: 2, Unit: "objects"})
	}
	return nil, nil
}

func (c *copying) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: c.copied == 2}, nil
}

// copies runs an action that copies, with this watcher.
func copies(w *world, watcher actions.Watcher) {
	k := &script{steps: []journal.PlannedStep{step("copy-objects")}}
	definition := k.definition()
	definition.Steps = map[string]actions.Step{"act": &copying{}}
	w.requestTest()
	cfg := w.Config([]actions.Definition{definition})
	cfg.Watcher = watcher
	w.RunToEnd(cfg)
	if !w.Ended() {
		w.T.Errorf("it did not end: %s", w.LastLine())
	}
}

func TestAStepReportsHowFarItHasComeToWhoWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var got []actions.Progress
		copies(w, func(action, id string, progress actions.Progress) {
			if action != actionstest.ActionID || id != "copy-objects" {
				t.Errorf("reported by %s of %s", id, action)
			}
			got = append(got, progress)
		})
		if diff := cmp.Diff([]actions.Progress{{Done: 1, Total: 2, Unit: "objects"}, {Done: 2, Total: 2, Unit: "objects"}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAStepThatNobodyWatchesReportsToNobody(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) { copies(w, nil) })
}
