package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// attended is how long after it was asked for a manual action counts as one that
// somebody watches.
const attended = 10 * time.Minute

// isNews reports whether a warning is to be recorded: at once if it is about
// something that was not recorded yet, and after a while if only its details are
// others. A warning is met only when a step starts, so the budget of retries bounds
// how many there are.
func (a *run) isNews(check Check) bool {
	for _, before := range slices.Backward(a.record.Warned) {
		if sameWarning(before, check) {
			return before.Text != check.Verdict.Reason && time.Since(before.At) >= detailsRest
		}
	}
	return true
}

// sameWarning reports whether a warning on record is about what the check says now.
// One of a version before keys has none: it is the same as what has no key now, and
// another than everything that has one, so that whoever must be told is told again.
func sameWarning(before journal.Warning, check Check) bool {
	return before.Preflight == check.Preflight && before.Key == check.Verdict.Key
}

// answered reports whether a warning about the same was answered. another is set
// when only others of the preflight were.
func (a *run) answered(check Check) (answered, another bool) {
	for _, before := range a.record.Warned {
		if sameWarning(before, check) {
			return true, false
		}
		another = another || before.Preflight == check.Preflight
	}
	return false, another
}

// heldForLoss makes a hold of each warning of a loss that nobody was told of, in
// a manual action that goes on without the person who asked for it.
func (a *run) heldForLoss(checks []Check) []Check {
	judged := make([]Check, len(checks))
	for i, check := range checks {
		judged[i] = check
		if v := check.Verdict; v.Kind == VerdictWarn && v.Loss && a.record.Request.Manual && !a.toldOf(check) {
			judged[i].Verdict = Hold(v.Reason + "; no person has seen this warning: " + v.Advice).About(v.Key)
		}
	}
	return judged
}

// toldOf reports whether a person was told of a warning, or is told when it is
// recorded.
func (a *run) toldOf(check Check) bool {
	answered, another := a.answered(check)
	return answered || a.record.Request.Force || (!another && a.isAttended())
}

// isAttended reports whether the person who asked for the action still watches
// it, as far as can be known: not after a restart, nor once the action waited
// for something that may take days.
func (a *run) isAttended() bool {
	return !a.resumed && !a.deferred && time.Since(a.record.RequestedAt) < attended
}

// noteDeferral remembers that a step was held by what it may wait for.
func (a *run) noteDeferral(held journal.PlannedStep, preflight string) {
	a.deferred = a.deferred || held.MayWait(preflight)
}
