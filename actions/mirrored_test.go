package actions_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func irreversible(s journal.PlannedStep) journal.PlannedStep {
	s.Irreversible = true
	return s
}

func TestEveryIrreversibleStepWaitsUntilTheActionIsMirrored(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := answering(actions.Hold("another EKCO has taken over"))
		k := &script{steps: []journal.PlannedStep{step("a"), irreversible(step("b", "a")), irreversible(guarded("c", "X"))}}
		k.steps[2].After = []string{"b"}
		w.requestTest()
		r := w.start(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{
			actions.Mirrored: mirrored, "X": always(actions.Pass()),
		}))
		letPass(time.Minute)
		w.wantStory("requested", "planned 3", "started a #1", "done a #1", `held "b" by Mirrored`)
		mirrored.turn(actions.Pass())
		before := mirrored.called()
		r.inbox.Recheck()
		r.end()
		if got := mirrored.called() - before; got != 2 {
			t.Errorf("asked %d times, want once for each irreversible step", got)
		}
		w.wantStory("requested", "planned 3", "started a #1", "done a #1", `held "b" by Mirrored`, `released "b" by Mirrored`,
			"started b #1", "done b #1", "started c #1", "done c #1", "ended done")
	})
}

func TestAnExplanationNamesTheMirrorWithoutAskingIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := answering(actions.Pass())
		k := &script{steps: []journal.PlannedStep{guarded("a", "X"), irreversible(guarded("b", "X"))}}
		w.requestTest()
		_, checks, err := actions.NewRunner(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{
			actions.Mirrored: mirrored, "X": always(actions.Pass()),
		})).Explain(t.Context(), w.record())
		if err != nil {
			t.Fatal(err)
		}
		last := checks[len(checks)-1]
		if len(checks) != 2+len(standing()) || last.Preflight != actions.Mirrored || last.Verdict.Kind != actions.VerdictUnasked || last.Verdict.Reason == "" {
			t.Errorf("explained as %+v", checks)
		}
		if mirrored.called() != 0 {
			t.Error("the mirror was asked, which writes it")
		}
	})
}

func TestTheMirrorIsNotAskedAboutADryRunAndIsNoPartOfAPlan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := answering(actions.Hold("another EKCO has taken over"))
		k := &script{steps: []journal.PlannedStep{irreversible(step("a"))}}
		w.request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true})
		cfg := withPreflights(w.config(k.kinds()), map[string]actions.Preflight{actions.Mirrored: mirrored})
		_, checks, err := actions.NewRunner(cfg).Explain(t.Context(), w.record())
		if err != nil || len(checks) != len(standing()) {
			t.Errorf("explained as %+v, %v", checks, err)
		}
		w.runToEnd(cfg)
		if mirrored.called() != 0 {
			t.Errorf("asked %d times", mirrored.called())
		}
	})
}
