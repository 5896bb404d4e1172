package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// localTime converts a recorded time from the journal's clock to the monotonic clock of this process, which no one can
// set. It turns a time in the future into the present time.
func (r *Runner) localTime(past time.Time) time.Time {
	if past.IsZero() {
		return past
	}
	return time.Now().Add(-max(0, r.cfg.Now().Sub(past)))
}

// localTimes returns a copy of a record with its times converted to the clock of this process. It limits the time of
// each retry to the longest backoff from now.
func (r *Runner) localTimes(record journal.ActionRecord) journal.ActionRecord {
	record = snapshot(record)
	record.RequestedAt = r.localTime(record.RequestedAt)
	for id, step := range record.Steps {
		step.StartedAt, step.DoneAt = r.localTime(step.StartedAt), r.localTime(step.DoneAt)
		if backoff := step.NextTry.Sub(r.cfg.Now()); !step.NextTry.IsZero() {
			step.NextTry = time.Now().Add(min(backoff, r.cfg.Retry.Max))
		}
		record.Steps[id] = step
	}
	record.Warned = slices.Clone(record.Warned)
	for i := range record.Warned {
		record.Warned[i].At = r.localTime(record.Warned[i].At)
	}
	return record
}
