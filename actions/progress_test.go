package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
	definition.Steps = map[string]actions.StepDef{"act": {Step: &copying{}}}
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

// late is a step whose effect shows at the fourth look.
type late struct{ looks int }

func (*late) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

func (l *late) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	l.looks++
	return actions.Proof{Done: l.looks > 3, Missing: fmt.Sprintf("look %d", l.looks)}, nil
}

func TestWhatALookForTheProofMissesIsToldToWhoWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("late")}}
		definition := k.definition()
		definition.Steps = map[string]actions.StepDef{"act": {Step: &late{}}}
		w.requestTest()
		cfg := w.Config([]actions.Definition{definition})
		var got []actions.Progress
		cfg.Watcher = func(_, _ string, progress actions.Progress) { got = append(got, progress) }
		w.RunToEnd(cfg)
		if diff := cmp.Diff([]actions.Progress{{Missing: "look 1"}, {Missing: "look 2"}, {Missing: "look 3"}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatAnActionCostsIsAskedOfItsKindAndAPanicIsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a")}}
		definition := k.definition()
		w.requestTest()
		costs := func() []string {
			return actions.NewRunner(w.Config([]actions.Definition{definition})).Costs(t.Context(), w.Record())
		}
		if got := costs(); got != nil {
			t.Errorf("a kind that does not say costs %q", got)
		}
		definition.Costs = func(_ context.Context, record journal.ActionRecord) []string { return []string{"of " + record.ID} }
		if got := costs(); len(got) != 1 || got[0] != "of "+actionstest.ActionID {
			t.Errorf("it costs %q", got)
		}
		definition.Costs = func(context.Context, journal.ActionRecord) []string { panic("oops") }
		if got := costs(); len(got) != 1 || !strings.Contains(got[0], "unknown") {
			t.Errorf("after a panic it costs %q", got)
		}
	})
}
