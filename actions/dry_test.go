package actions_test

import (
	"context"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestADryRunRecordsEveryStepAndDoesNone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X"), step("b", "a")}}
		k.prove = func(context.Context, string) (bool, error) { t.Error("a proof was looked for"); return false, nil }
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true, Manual: true})
		w.RunToEnd(w.guardedBy(k, actionstest.Always(actions.Warn("careful"))))
		w.WantStory("requested", "planned 2", "warned X: careful (no terminal)",
			"started a #1", "done a #1 dry", "started b #1", "done b #1 dry", "ended dry-run")
		if len(k.calls()) != 0 {
			t.Errorf("did %q", k.calls())
		}
	})
}

func TestAnExplanationOfAnOpenActionShowsThePlanItHas(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{plan: func() error { t.Error("it was planned again"); return nil }}
		interrupted(w, guarded("a", "X"))
		cfg := w.guardedBy(k, actionstest.Always(actions.Pass()))
		plan, checks, err := actions.NewRunner(cfg).Explain(w.T.Context(), w.Record())
		if err != nil || len(plan.Steps) != 1 || len(checks) != 1+len(standing()) || checks[0].Preflight != "X" {
			t.Errorf("got %v, %v, %v", plan, checks, err)
		}
	})
}
