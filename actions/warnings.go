package actions

import (
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// attended is how long after it was asked for a manual action counts as one that
// somebody watches.
const attended = 10 * time.Minute

// isNews reports whether a warning is to be recorded: at once if it was not yet,
// and after a while if only its numbers are others. A warning is met only when a
// step starts, so the budget of retries bounds how many there are.
func (a *run) isNews(check Check) bool {
	for _, before := range slices.Backward(a.record.Warned) {
		if before.Preflight == check.Preflight && gist(before.Text) == gist(check.Verdict.Reason) {
			return before.Text != check.Verdict.Reason && time.Since(before.At) >= numbersRest
		}
	}
	return true
}

// answered reports whether a warning that begins alike was answered. What comes
// after the first colon are details, which change while the action goes on.
// another is set when only others of the preflight were.
func (a *run) answered(check Check) (answered, another bool) {
	for _, before := range a.record.Warned {
		if before.Preflight != check.Preflight {
			continue
		}
		if opening(gist(before.Text)) == opening(gist(check.Verdict.Reason)) {
			return true, false
		}
		another = true
	}
	return false, another
}

func opening(text string) string {
	first, _, _ := strings.Cut(text, ":")
	return first
}

// heldForLoss makes a hold of each warning of a loss that nobody was told of, in
// a manual action that goes on without the person who asked for it.
func (a *run) heldForLoss(checks []Check) []Check {
	judged := make([]Check, len(checks))
	for i, check := range checks {
		judged[i] = check
		if v := check.Verdict; v.Kind == VerdictWarn && v.Loss && a.record.Request.Manual && !a.toldOf(check) {
			judged[i].Verdict = Hold(v.Reason + "; nobody has been told of this: " + v.Advice)
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
