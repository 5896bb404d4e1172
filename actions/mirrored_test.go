package actions_test

import (
	"context"
	"slices"
	"strings"
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
		mirrored := actionstest.NewPreflight(actions.Hold("another EKCO has taken over"))
		k := &script{steps: []journal.PlannedStep{step("a"), irreversible(step("b", "a")), irreversible(guarded("c", "X"))}}
		k.steps[2].After = []string{"b"}
		w.requestTest()
		r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
			actions.Mirrored: mirrored, "X": actionstest.Always(actions.Pass()),
		}))
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 3", "started a #1", "done a #1", `held "b" by Mirrored`)
		mirrored.SetVerdict(actions.Pass())
		before := mirrored.Calls()
		r.Inbox.Recheck()
		r.End()
		if got := mirrored.Calls() - before; got != 2 {
			t.Errorf("asked %d times, want once for each irreversible step", got)
		}
		w.WantStory("requested", "planned 3", "started a #1", "done a #1", `held "b" by Mirrored`, `released "b" by Mirrored`,
			"started b #1", "done b #1", "started c #1", "done c #1", "ended done")
	})
}

func TestEveryStepOfAnExclusiveKindWaitsUntilTheActionIsMirrored(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := actionstest.NewPreflight(actions.Hold("another EKCO is at work"))
		k := &script{steps: []journal.PlannedStep{step("a")}}
		kinds := k.kinds()
		kinds[0].Exclusive = true
		w.requestTest()
		r := w.Start(actionstest.With(w.Config(kinds), map[string]actions.Preflight{actions.Mirrored: mirrored}))
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 1", `held "a" by Mirrored`)
		mirrored.SetVerdict(actions.Pass())
		r.Inbox.Recheck()
		r.End()
		w.WantStory("requested", "planned 1", `held "a" by Mirrored`, `released "a" by Mirrored`, "started a #1", "done a #1", "ended done")
	})
}

func TestAnExplanationNamesTheMirrorWithoutAskingIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := actionstest.NewPreflight(actions.Pass())
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
		if mirrored.Calls() != 0 {
			t.Error("the mirror was asked, which writes it")
		}
	})
}

func TestTheMirrorIsNotAskedAboutADryRunAndIsNoPartOfAPlan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mirrored := actionstest.NewPreflight(actions.Hold("another EKCO has taken over"))
		k := &script{steps: []journal.PlannedStep{irreversible(step("a"))}}
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true})
		cfg := actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{actions.Mirrored: mirrored})
		_, checks, err := actions.NewRunner(cfg).Explain(t.Context(), w.Record())
		if err != nil || len(checks) != len(standing()) {
			t.Errorf("explained as %+v, %v", checks, err)
		}
		w.RunToEnd(cfg)
		if mirrored.Calls() != 0 {
			t.Errorf("asked %d times", mirrored.Calls())
		}
	})
}

// slowStore takes a second to append.
type slowStore struct{ journal.Store }

func (s slowStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	<-time.After(time.Second)
	return s.Store.Append(ctx, drafts...)
}

// TestTheMirrorIsAskedOnceTheJournalHasWhatItIsToHave: else an EKCO that starts elsewhere would
// know of the step, and neither of the plan nor of what the steps before left.
func TestTheMirrorIsAskedOnceTheJournalHasWhatItIsToHave(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a"), irreversible(step("b", "a"))}}
		k.undo = []journal.PlannedStep{undoes("undo a", "a")} // so that each step is asked
		var stories []string
		mirrored := actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			stories = append(stories, strings.Join(w.Story(), ", "))
			return actions.Pass()
		})
		w.requestTest()
		cfg := actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{actions.Mirrored: mirrored})
		cfg.Store = slowStore{cfg.Store}
		w.RunToEnd(cfg)
		if want := []string{"requested, planned 2", "requested, planned 2, started a #1, done a #1"}; !slices.Equal(stories, want) {
			t.Errorf("when it was asked the journal said %q, want %q", stories, want)
		}
	})
}
