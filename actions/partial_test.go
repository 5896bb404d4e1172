package actions_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// leaving is a step that says in its outputs what it has left.
type leaving struct {
	outputs string
	done    bool
}

func (s *leaving) Do(context.Context, actions.StepContext) (json.RawMessage, error) {
	s.done = true
	return json.RawMessage(s.outputs), nil
}

func (s *leaving) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	if !s.done {
		return actions.Proof{Missing: "the effect"}, nil
	}
	return actions.Proof{Done: true, Outputs: json.RawMessage(s.outputs)}, nil
}

func TestWhatIsMissingIsPartialWhereItsKindSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		partial, dry bool
		outputs      string
		outcome      journal.Outcome
		reason       string
	}{
		"missing":                  {true, false, `{"missing":"it is away","left":"w1 is left"}`, journal.OutcomePartial, "w1 is left; it is away"},
		"missing, another kind":    {false, false, `{"missing":"it is away"}`, journal.OutcomeDone, "it is away"},
		"left, and nothing lacks":  {true, false, `{"missing":"","left":"w1 is gone"}`, journal.OutcomeDone, "w1 is gone"},
		"missing is another thing": {true, false, `{"missing":["a"]}`, journal.OutcomeDone, ""},
		"no outputs of that form":  {true, false, `["a"]`, journal.OutcomeDone, ""},
		"a dry run":                {true, true, `{"missing":"it is away"}`, journal.OutcomeDryRun, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				definition := (&script{steps: []journal.PlannedStep{step("a")}}).definition()
				definition.Partial, definition.Steps = test.partial, map[string]actions.StepDef{"act": {Step: &leaving{outputs: test.outputs, done: test.dry}}}
				w.Request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: test.dry})
				w.RunToEnd(w.Config([]actions.Definition{definition}))
				for _, event := range w.Events() {
					payload, err := event.Decode()
					if err != nil {
						t.Fatal(err)
					}
					if ended, is := payload.(*journal.ActionEnded); is && (ended.Outcome != test.outcome || !test.dry && ended.Reason != test.reason) {
						t.Errorf("it ended %s (%s), want %s (%s)", ended.Outcome, ended.Reason, test.outcome, test.reason)
					}
				}
			})
		})
	}
}
