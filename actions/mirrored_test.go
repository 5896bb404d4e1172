package actions_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func irreversible(s journal.PlannedStep) journal.PlannedStep {
	s.Irreversible = true
	return s
}

func TestEveryIrreversibleStepWaitsUntilTheActionIsMirrored(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := actionstest.Answering(actions.Hold("another EKCO has taken over"))
		k := &script{steps: []journal.PlannedStep{step("a"), irreversible(step("b", "a")), irreversible(guarded("c", "X"))}}
		k.steps[2].After = []string{"b"}
		w.requestTest()
		r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
			actions.Mirrored: mirrored, "X": actionstest.Always(actions.Pass()),
		}))
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 3", "started a #1", "done a #1", `held "b" by Mirrored`)
		mirrored.Turn(actions.Pass())
		before := mirrored.Called()
		r.Inbox.Recheck()
		r.End()
		if got := mirrored.Called() - before; got != 2 {
			t.Errorf("asked %d times, want once for each irreversible step", got)
		}
		w.WantStory("requested", "planned 3", "started a #1", "done a #1", `held "b" by Mirrored`, `released "b" by Mirrored`,
			"started b #1", "done b #1", "started c #1", "done c #1", "ended done")
	})
}

func TestAnExplanationNamesTheMirrorWithoutAskingIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := actionstest.Answering(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X"), irreversible(guarded("b", "X"))}}
		w.requestTest()
		_, checks, err := actions.NewRunner(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
			actions.Mirrored: mirrored, "X": actionstest.Always(actions.Pass()),
		})).Explain(t.Context(), w.Record())
		if err != nil {
			t.Fatal(err)
		}
		last := checks[len(checks)-1]
		if len(checks) != 2+len(standing()) || last.Preflight != actions.Mirrored || last.Verdict.Kind != actions.VerdictUnasked || last.Verdict.Reason == "" {
			t.Errorf("explained as %+v", checks)
		}
		if mirrored.Called() != 0 {
			t.Error("the mirror was asked, which writes it")
		}
	})
}

func TestTheMirrorIsNotAskedAboutADryRunAndIsNoPartOfAPlan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := actionstest.Answering(actions.Hold("another EKCO has taken over"))
		k := &script{steps: []journal.PlannedStep{irreversible(step("a"))}}
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true})
		cfg := actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{actions.Mirrored: mirrored})
		_, checks, err := actions.NewRunner(cfg).Explain(t.Context(), w.Record())
		if err != nil || len(checks) != len(standing()) {
			t.Errorf("explained as %+v, %v", checks, err)
		}
		w.RunToEnd(cfg)
		if mirrored.Called() != 0 {
			t.Errorf("asked %d times", mirrored.Called())
		}
	})
}
