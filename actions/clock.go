package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// here returns a time on record, which is by the journal's clock, by that of this
// process: the monotonic one, which nobody sets. Nothing was later than now.
func (r *Runner) here(past time.Time) time.Time {
	if past.IsZero() {
		return past
	}
	return time.Now().Add(-max(0, r.cfg.Now().Sub(past)))
}

// taken returns a copy of a record with its times by this process's clock. What
// was to be tried again later waits no longer than the longest rest.
func (r *Runner) taken(record journal.ActionRecord) journal.ActionRecord {
	record = snapshot(record)
	record.RequestedAt = r.here(record.RequestedAt)
	for id, step := range record.Steps {
		step.StartedAt, step.DoneAt = r.here(step.StartedAt), r.here(step.DoneAt)
		if rest := step.NextTry.Sub(r.cfg.Now()); !step.NextTry.IsZero() {
			step.NextTry = time.Now().Add(min(rest, r.cfg.Retry.Max))
		}
		record.Steps[id] = step
	}
	record.Warned = slices.Clone(record.Warned)
	for i := range record.Warned {
		record.Warned[i].At = r.here(record.Warned[i].At)
	}
	return record
}
