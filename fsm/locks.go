package fsm

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Occupied returns the domains that the action has locked at the given time, each with the id of the step that has the
// lock: a running step, or a step that keeps its locks until it is verified. A dry run has no locks.
func Occupied(rec *journal.ActionRecord, now time.Time) map[string]string {
	return selectLocks(rec, func(step journal.StepRecord, planned journal.PlannedStep) bool { return holdsLocks(step, planned, now) })
}

// ownLocks returns the locks that these steps can use without waiting for their turn: their own, and those that any
// step of the action keeps until it is verified. During a cancel it returns all locks of the action, because only this
// action can finish its open steps.
func ownLocks(rec *journal.ActionRecord, now time.Time, steps []string) map[string]string {
	return selectLocks(rec, func(step journal.StepRecord, planned journal.PlannedStep) bool {
		own := slices.Contains(steps, planned.ID) || rec.Cancelling != nil
		return (own && holdsLocks(step, planned, now)) || (!step.Done() && step.KeepsLocks(planned, now))
	})
}

// selectLocks returns the domains of the planned steps for which selected returns true, each with the id of the step.
func selectLocks(rec *journal.ActionRecord, selected func(journal.StepRecord, journal.PlannedStep) bool) map[string]string {
	if rec.Request.DryRun {
		return nil
	}
	domains := map[string]string{}
	for _, steps := range [][]journal.PlannedStep{rec.Plan.Steps, rec.Plan.Undo} {
		for _, step := range steps {
			if len(step.Domains) == 0 || !selected(rec.Steps[step.ID], step) {
				continue
			}
			_, held := rec.Holds[step.ID]
			for _, domain := range step.Domains {
				// A held step does not keep the lock on a host: the hold may last, and after a restart of EKCO the
				// step's task may be gone. If the task still runs, its own lock on the host stops other tasks.
				if _, host := journal.HostOf(domain); !host || !held {
					domains[domain] = step.ID
				}
			}
		}
	}
	return domains
}

func holdsLocks(step journal.StepRecord, planned journal.PlannedStep, now time.Time) bool {
	return step.Open || (!step.Done() && step.KeepsLocks(planned, now))
}
