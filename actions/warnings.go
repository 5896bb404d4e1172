package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// attendedTime is how long EKCO assumes that a person watches a manual action after requesting it.
const attendedTime = 10 * time.Minute

// mustRecordWarning reports whether to record a warning: at once if its key is new, and after minDetailsInterval if
// only its text changed. Warnings come only when a step starts, so the retry budget limits their number.
func (a *run) mustRecordWarning(check Check) bool {
	for _, before := range slices.Backward(a.record.Warned) {
		if sameWarning(before, check) {
			return before.Text != check.Verdict.Reason && time.Since(before.At) >= minDetailsInterval
		}
	}
	return true
}

// sameWarning reports whether a recorded warning has the same cause as the check. Old versions recorded warnings
// without keys. Such a warning differs from every check with a key, so EKCO warns the person again.
func sameWarning(before journal.Warning, check Check) bool {
	return before.Preflight == check.Preflight && before.Key == check.Verdict.Key
}

// isAnswered reports whether a person answered this warning. another is true if only other warnings of the preflight
// were answered.
func (a *run) isAnswered(check Check) (answered, another bool) {
	for _, before := range a.record.Warned {
		if sameWarning(before, check) {
			return true, false
		}
		another = another || before.Preflight == check.Preflight
	}
	return false, another
}

// heldForLoss returns the checks with a hold for each warning of a loss that no person has seen, if a manual action
// continues unattended.
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

// isSeen reports whether a person has seen a warning, or will see it when it is recorded.
func (a *run) isSeen(check Check) bool {
	answered, another := a.isAnswered(check)
	return answered || a.record.Request.Force || (!another && a.isAttended())
}

// isAttended reports whether EKCO assumes that the person who requested the action still watches it. It returns false
// after a restart, and after a wait that may have taken days.
func (a *run) isAttended() bool {
	return !a.resumed && !a.deferred && time.Since(a.record.RequestedAt) < attendedTime
}

// noteDeferral sets deferred if the plan lets the step wait without limit for the preflight that held it.
func (a *run) noteDeferral(held journal.PlannedStep, preflight string) {
	a.deferred = a.deferred || held.MayWait(preflight)
}
