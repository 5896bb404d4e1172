package fsm

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Occupied returns the domains that the action has locked at the given time, each with the id of the step that holds
// the lock. Running steps hold locks, and steps that keep their locks until they are verified. A dry run holds no
// locks.
func Occupied(rec *journal.ActionRecord, now time.Time) map[string]string {
	return selectLocks(rec, func(step journal.StepRecord, planned journal.PlannedStep) bool { return holdsLocks(step, planned, now) })
}

// ownLocks returns the locks that these steps can use without waiting for their turn: the locks that they hold
// themselves, and the locks that any step of the action keeps until it is verified. While the action is being
// cancelled, it returns all locks of the action, because only this action can finish the steps that it left open.
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
