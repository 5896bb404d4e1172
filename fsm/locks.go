package fsm

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Occupied returns the locks (domains) that steps of the action hold at the given time, each once, with the step:
// running steps, and those that keep their locks until they are verified. A dry run has none.
func Occupied(rec *journal.ActionRecord, now time.Time) map[string]string {
	return locks(rec, func(step journal.StepRecord, planned journal.PlannedStep) bool { return occupies(step, planned, now) })
}

// retained returns the locks that the action holds and that are not new to these steps: their own locks, and those
// that any step keeps until it is verified. While the action is cancelled, no lock is new, since no other action
// finishes what it left open.
func retained(rec *journal.ActionRecord, now time.Time, steps []string) map[string]string {
	return locks(rec, func(step journal.StepRecord, planned journal.PlannedStep) bool {
		own := slices.Contains(steps, planned.ID) || rec.Cancelling != nil
		return (own && occupies(step, planned, now)) || (!step.Done() && step.Keeps(planned, now))
	})
}

// locks returns the locks of the selected steps, each once, with the step.
func locks(rec *journal.ActionRecord, those func(journal.StepRecord, journal.PlannedStep) bool) map[string]string {
	if rec.Request.DryRun {
		return nil
	}
	domains := map[string]string{}
	for _, steps := range [][]journal.PlannedStep{rec.Plan.Steps, rec.Plan.Undo} {
		for _, step := range steps {
			if len(step.Domains) == 0 || !those(rec.Steps[step.ID], step) {
				continue
			}
			_, held := rec.Holds[step.ID]
			for _, domain := range step.Domains {
				// After a restart of EKCO, the task of a step that is held may be gone, and the hold may last. If
				// the task runs, the lock on the host itself keeps others out.
				if _, host := journal.HostOf(domain); !host || !held {
					domains[domain] = step.ID
				}
			}
		}
	}
	return domains
}

// occupies reports whether the step holds its locks.
func occupies(step journal.StepRecord, planned journal.PlannedStep, now time.Time) bool {
	return step.Open || (!step.Done() && step.Keeps(planned, now))
}
