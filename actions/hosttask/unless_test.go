package hosttask_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	shape "github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/journal"
)

// TestWhatMustNotRunHasFailedOnlyIfItMayHaveRun: an attempt before may have run it.
func TestWhatMustNotRunHasFailedOnlyIfItMayHaveRun(t *testing.T) {
	cluster := hosttasksim.New("a")
	tasks := hosttask.New(cluster, cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
	work := shape.Work{Tasks: tasks, Does: "paint", Partial: true, Unless: func(journal.ActionRecord, string) string { return "it is wet" }}
	input, err := json.Marshal(map[string]any{"task": hosttask.Task{Name: "paint", Node: "a", NodeUID: "uid-a"}})
	if err != nil {
		t.Fatal(err)
	}
	for attempts, failed := range map[int]bool{1: false, 2: true} {
		outputs, err := work.Steps()["paint"].Do(t.Context(), actions.StepContext{
			Planned: journal.PlannedStep{ID: "paint a", Input: input},
			Action:  journal.ActionRecord{Steps: map[string]journal.StepRecord{"paint a": {Attempts: attempts}}},
		})
		var outcome shape.Outcome
		if err == nil {
			err = json.Unmarshal(outputs, &outcome)
		}
		if err != nil || outcome.Missing == "" || outcome.Failed != failed || len(cluster.Pods()) > 0 {
			t.Errorf("attempt %d: %v: %+v", attempts, err, outcome)
		}
	}
}
