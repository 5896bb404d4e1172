package actions_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// slowly answers after that time.
func slowly(span time.Duration, verdict actions.Verdict) actions.Preflight {
	return actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
		select {
		case <-ctx.Done():
			return actions.Hold(ctx.Err().Error())
		case <-time.After(span):
			return verdict
		}
	})
}

func TestAPreflightThatDoesNotAnswerIsSaidToBeWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X", "Y", "Z")}}
		w.requestTest()
		r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{
			"X": slowly(4*time.Second, actions.Pass()), "Y": slowly(20*time.Second, actions.Pass()), "Z": slowly(15*time.Second, actions.Pass()),
		}))
		w.Pass(4900 * time.Millisecond)
		w.WantStory("requested", "planned 1")
		w.Pass(200 * time.Millisecond)
		w.WantStory("requested", "planned 1", `held "a" by Answer`)
		if reason := w.Record().Holds["a"].Reason; reason != "Y, Z have not answered within 5s" {
			t.Errorf("the hold says %q", reason)
		}
		r.End()
		w.WantStory("requested", "planned 1", `held "a" by Answer`, `released "a" by Answer`, "started a #1", "done a #1", "ended done")
	})
}

func TestAPreflightThatAnswersLateEachTimeIsToldOfOnce(t *testing.T) {
	for name, test := range map[string]struct {
		x, y actions.Verdict
		want []string
	}{
		"and holds":            {actions.Hold("not yet"), actions.Pass(), []string{`held "a" by Answer`, `held "a" by X`}},
		"while another holds":  {actions.Pass(), actions.Hold("not yet"), []string{`held "a" by Answer`, `held "a" by Y`}},
		"and has to last, too": {actions.Pass().About("well").OnceLasting(time.Hour, "it is well"), actions.Pass(), []string{`held "a" by Answer`, `held "a" by X`}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{guarded("a", "X", "Y")}}
				w.requestTest()
				r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{"X": slowly(8*time.Second, test.x), "Y": actionstest.Always(test.y)}))
				w.Pass(30 * time.Minute)
				w.WantStory(append([]string{"requested", "planned 1"}, test.want...)...)
				if reason := w.Record().Holds["a"].Reason; strings.Contains(reason, "not answered") {
					t.Errorf("the hold says %q", reason)
				}
				r.Halt()
			})
		})
	}
}

func TestAPlanThatIsLongInTheMakingIsSaidToBeWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a")}, plan: func() error {
			<-time.After(10 * time.Second)
			return nil
		}}
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(6 * time.Second)
		if reason := w.Record().Holds[""].Reason; reason != "Plan has not answered within 5s" {
			t.Errorf("the hold says %q", reason)
		}
		r.End()
		w.WantStory("requested", `held "" by Answer`, `released "" by Answer`, "planned 1", "started a #1", "done a #1", "ended done")
	})
}

func TestAnActionWhoseProofIsLongInComingSaysSoAndIsNotHeldAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a")}}
		k.prove = func(context.Context, string) (bool, error) {
			<-time.After(10 * time.Second)
			return true, nil
		}
		w.requestTest()
		w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
		w.Append("operator", journal.StepStarted{Step: "a", Attempt: 1}, journal.TypeStepStarted)
		w.Start(w.Config(k.kinds())).End()
		w.WantStory("requested", "planned 1", "started a #1", `held "a" by Answer`, `released "a" by Answer`, "done a #1 already", "ended done")
	})
}
