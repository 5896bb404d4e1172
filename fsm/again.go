package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// RetryAfter is how long EKCO waits before it repeats an action that ended early, unless it observes something new.
const RetryAfter = 10 * time.Minute

// RetryChange is [Thing.Again] for an action whose effect EKCO knows as soon as it is made. The action may be requested
// at once if it was made, if the last one is done, or if the last one was for another target (other).
func (t *Thing) RetryChange(kind journal.ActionKind, other bool, p Policy) (due time.Time, may bool) {
	if last := t.Last[kind]; other || last == nil || last.Outcome == journal.OutcomeDone {
		return time.Time{}, true
	}
	return t.Again(kind, p, RetryAfter)
}

// Again returns when the thing may want another action of this kind, and whether it may at all. It may at once if there
// was none yet, or if EKCO has observed the thing since. Otherwise EKCO may not have seen the effect yet, or another
// client undid it first, so it may after the backoff. A dry run is not repeated as a dry run: it would change nothing.
func (t *Thing) Again(kind journal.ActionKind, p Policy, rest time.Duration) (due time.Time, may bool) {
	last := t.Last[kind]
	switch {
	case last == nil, t.FactsSeq > last.Seq:
		return time.Time{}, true
	case last.Outcome == journal.OutcomeDryRun && p.DryRun:
		return time.Time{}, false
	case last.Outcome == journal.OutcomeDryRun:
		return time.Time{}, true
	}
	return last.At.Add(rest), true
}
