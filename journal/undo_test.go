package journal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// begun is an action that has begun a, then c, then b, each of which can be taken
// back, and not d.
func begun() journal.ActionRecord {
	at := func(second int) journal.StepRecord {
		return journal.StepRecord{Attempts: 1, StartedAt: time.Unix(int64(second), 0)}
	}
	var plan journal.Plan
	for _, id := range []string{"a", "b", "c", "d"} {
		plan.Steps = append(plan.Steps, journal.PlannedStep{ID: id})
		plan.Undo = append(plan.Undo, journal.PlannedStep{ID: "undo " + id, Undoes: id})
	}
	return journal.ActionRecord{
		Planned: true, Plan: plan, Cancelling: &journal.ActionCancelling{},
		Steps: map[string]journal.StepRecord{"a": at(1), "b": at(3), "c": at(2)},
	}
}

func TestWhatWasBegunLastIsTakenBackFirst(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*journal.ActionRecord)
		want   []string
	}{
		"in another order than planned": {func(*journal.ActionRecord) {}, []string{"undo b", "undo c", "undo a"}},
		"at the same time": {func(r *journal.ActionRecord) {
			r.Steps["b"] = r.Steps["c"]
		}, []string{"undo c", "undo b", "undo a"}},
		"with a new budget": {func(r *journal.ActionRecord) {
			r.Steps["a"] = journal.StepRecord{StartedAt: time.Unix(1, 0)}
		}, []string{"undo b", "undo c", "undo a"}},
		"past the point of no return": {func(r *journal.ActionRecord) { r.PastNoReturn = true }, nil},
		"a dry run":                   {func(r *journal.ActionRecord) { r.Request.DryRun = true }, nil},
		"nothing was begun":           {func(r *journal.ActionRecord) { r.Steps = nil }, nil},
	} {
		record := begun()
		test.change(&record)
		var got []string
		for _, step := range record.ToUndo() {
			got = append(got, step.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestAnActionIsUndoingUntilEverythingIsTakenBack(t *testing.T) {
	record := begun()
	if !record.Undoing() {
		t.Error("it is not undoing though nothing is taken back yet")
	}
	for _, id := range []string{"undo a", "undo b", "undo c"} {
		record.Steps[id] = journal.StepRecord{Attempts: 1, DoneAt: time.Unix(9, 0)}
	}
	if record.Undoing() {
		t.Error("it is undoing though everything is taken back")
	}
	delete(record.Steps, "undo a")
	record.Cancelling = nil
	if record.Undoing() {
		t.Error("it is undoing though nobody cancelled it")
	}
}

func TestAStepIsFoundInThePlanAlsoIfItUndoesAnother(t *testing.T) {
	plan := begun().Plan
	for _, id := range []string{"b", "undo b"} {
		if step, ok := plan.Step(id); !ok || step.ID != id {
			t.Errorf("%s is %+v, %v", id, step, ok)
		}
	}
	if _, ok := plan.Step("e"); ok {
		t.Error("a step is found that is not planned")
	}
}
