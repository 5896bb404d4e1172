package hosttask_test

import (
	"encoding/json"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	shape "github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

// TestWhatMustNotRunHasNotFailed: it is missing, and nothing has run.
func TestWhatMustNotRunHasNotFailed(t *testing.T) {
	work := shape.Work{Does: "paint", Partial: true, Unless: func(journal.ActionRecord, string) string { return "it is wet" }}
	input, err := json.Marshal(map[string]any{"task": hosttask.Task{Name: "paint", Node: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	proof, err := work.Steps()["paint"].Prove(t.Context(), actions.StepContext{Planned: journal.PlannedStep{ID: "paint a", Input: input}})
	var outcome shape.Outcome
	if err == nil {
		err = json.Unmarshal(proof.Outputs, &outcome)
	}
	if err != nil || !proof.Done || outcome.Missing != "it is wet" || outcome.Failed {
		t.Errorf("%v: %+v", err, outcome)
	}
}
