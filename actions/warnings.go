package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// attendedTime is how long EKCO assumes that a person watches the manual action that they requested.
const attendedTime = 10 * time.Minute

// isNews reports whether to record a warning: at once if it has a new key, and after minDetailsInterval if only its text
// changed. Warnings come only when a step starts, so the retry budget bounds their number.
func (a *run) isNews(check Check) bool {
	for _, before := range slices.Backward(a.record.Warned) {
		if sameWarning(before, check) {
			return before.Text != check.Verdict.Reason && time.Since(before.At) >= minDetailsInterval
		}
	}
	return true
}

// sameWarning reports whether a recorded warning is about the same as the check. A warning of a version before keys has
// no key, so it differs from every check with a key, and the person is warned again.
func sameWarning(before journal.Warning, check Check) bool {
	return before.Preflight == check.Preflight && before.Key == check.Verdict.Key
}

// answered reports whether this warning was answered. another is set if only other warnings of the preflight were.
func (a *run) answered(check Check) (answered, another bool) {
	for _, before := range a.record.Warned {
		if sameWarning(before, check) {
			return true, false
		}
		another = another || before.Preflight == check.Preflight
	}
	return false, another
}

// heldForLoss turns into a hold each warning of a loss that no person has seen, in a manual action that continues
// unattended.
func (a *run) heldForLoss(checks []Check) []Check {
	judged := make([]Check, len(checks))
	for i, check := range checks {
		judged[i] = check
		if v := check.Verdict; v.Kind == VerdictWarn && v.Loss && a.record.Request.Manual && !a.isSeen(check) {
			judged[i].Verdict = Hold(v.Reason + "; no person has seen this warning: " + v.Advice).About(v.Key)
		}
	}
	return judged
}

// isSeen reports whether a person has seen a warning, or sees it when it is recorded.
func (a *run) isSeen(check Check) bool {
	answered, another := a.answered(check)
	return answered || a.record.Request.Force || (!another && a.isAttended())
}

// isAttended reports whether EKCO assumes that the person who requested the action still watches it: not after a
// restart, nor after the action waited for something that may take days.
func (a *run) isAttended() bool {
	return !a.resumed && !a.deferred && time.Since(a.record.RequestedAt) < attendedTime
}

// noteDeferral notes that a step was held by a preflight for which its plan lets it wait.
func (a *run) noteDeferral(held journal.PlannedStep, preflight string) {
	a.deferred = a.deferred || held.MayWait(preflight)
}
