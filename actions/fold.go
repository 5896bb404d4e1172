package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// fold brings a record up to what a payload says, as package fsm folds the
// event it becomes. Times are those of drafting, not of the journal.
func fold(record *journal.ActionRecord, payload journal.Payload, now time.Time) {
	switch p := payload.(type) {
	case journal.ActionPlanned:
		record.Planned, record.Plan = true, p.Plan
	case journal.ActionHeld:
		if record.Holds == nil {
			record.Holds = make(map[string]journal.ActionHeld)
		}
		record.Holds[p.Step] = p
	case journal.ActionLeft:
		if record.Left == nil {
			record.Left = make(map[string]string)
		}
		record.Left[p.What] = p.Reason
	case journal.ActionReleased:
		delete(record.Holds, p.Step)
	case journal.ActionStalled:
		record.Stalled = &p
	case journal.ActionRetried:
		foldRetried(record)
	case journal.ActionCancelling:
		record.Cancelling, record.Stalled, record.Holds = &p, nil, nil
	case journal.ActionEnded:
		record.Ended, record.EndedAt = &p, now
	default:
		foldStep(record, payload, now)
	}
}

func foldStep(record *journal.ActionRecord, payload journal.Payload, now time.Time) {
	if record.Steps == nil {
		record.Steps = make(map[string]journal.StepRecord)
	}
	switch p := payload.(type) {
	case journal.StepStarted:
		step := record.Steps[p.Step]
		step.Attempts, step.Open, step.NextTry = p.Attempt, true, time.Time{}
		if step.StartedAt.IsZero() {
			step.StartedAt = now
		}
		record.Steps[p.Step] = step
		if planned, ok := record.Plan.Step(p.Step); ok && planned.Irreversible {
			record.PastNoReturn = true
		}
	case journal.StepDone:
		step := record.Steps[p.Step]
		step.Attempts, step.DoneAt, step.Outputs = max(step.Attempts, p.Attempt), now, p.Outputs
		step.Open, step.LastError, step.NextTry = false, "", time.Time{}
		record.Steps[p.Step] = step
	case journal.StepFailed:
		step := record.Steps[p.Step]
		step.Attempts = max(step.Attempts, p.Attempt)
		step.Open, step.LastError, step.NextTry = false, p.Error, p.NextTry
		record.Steps[p.Step] = step
	}
}

// foldRetried gives every step that is not done its whole budget again.
func foldRetried(record *journal.ActionRecord) {
	record.Stalled, record.Holds = nil, nil
	for id, step := range record.Steps {
		if !step.Done() {
			step.Attempts, step.NextTry = 0, time.Time{}
			record.Steps[id] = step
		}
	}
}
