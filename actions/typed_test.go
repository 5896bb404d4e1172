package actions

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestAnInputIsReadOnceForPlanAndCheck(t *testing.T) {
	type input struct {
		N int `json:"n"`
	}
	plan := PlanOf(func(_ context.Context, _ journal.ActionRecord, in input) (journal.Plan, error) {
		return journal.Plan{Steps: make([]journal.PlannedStep, in.N)}, nil
	})
	check := CheckOf(func(_ context.Context, _ journal.ActionRecord, in input) Verdict {
		if in.N == 2 {
			return Pass()
		}
		return Abandon("it is another input")
	})
	record := journal.ActionRecord{Request: journal.ActionRequested{Input: json.RawMessage(`{"n":2}`)}}
	if made, err := plan(t.Context(), record); err != nil || len(made.Steps) != 2 || string(made.Facts) != `{"n":2}` {
		t.Errorf("the plan is %+v, %v", made, err)
	}
	if got := check.Check(t.Context(), record); got.Kind != VerdictPass {
		t.Errorf("the verdict is %+v", got)
	}
	record.Request.Input = json.RawMessage(`{"n":"two"}`)
	if made, err := plan(t.Context(), record); err == nil {
		t.Errorf("an input that cannot be read is planned: %+v", made)
	}
	if got := check.Check(t.Context(), record); got.Kind != VerdictHold || got.Key != "input" {
		t.Errorf("the verdict about an input that cannot be read is %+v", got)
	}
}

type typedStep struct{}

func (typedStep) Prove(_ context.Context, _ StepContext, in string) (Proof, error) {
	return Proof{Missing: in}, nil
}

func (typedStep) Do(_ context.Context, _ StepContext, in string) (json.RawMessage, error) {
	return json.RawMessage(in), nil
}

func TestAStepGetsFactsOrInput(t *testing.T) {
	var step StepContext
	step.Action.Plan.Facts, step.Planned.Input = json.RawMessage(`"facts"`), json.RawMessage(`"input"`)
	for want, code := range map[string]Step{"facts": WithFacts(typedStep{}), "input": WithInput(typedStep{})} {
		proof, err := code.Prove(t.Context(), step)
		outputs, doErr := code.Do(t.Context(), step)
		if err != nil || doErr != nil || proof.Missing != want || string(outputs) != want {
			t.Errorf("Prove gets %q, %v, and Do %q, %v, want %q", proof.Missing, err, outputs, doErr, want)
		}
	}
	step.Action.Plan.Facts = json.RawMessage(`{`)
	if _, err := WithFacts(typedStep{}).Do(t.Context(), step); err == nil {
		t.Error("facts that cannot be read are no error")
	}
}
