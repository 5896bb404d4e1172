package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// RetryAfter is how long EKCO waits, if nothing new is seen, before it requests again what ended early.
const RetryAfter = 10 * time.Minute

// RetryChange is [Thing.Again] for an action whose effect is known once it was made: then, or if it was done, or if
// something else is wanted than by the last one (other), it may be requested at once.
func (t *Thing) RetryChange(kind journal.ActionKind, other bool, p Policy) (due time.Time, may bool) {
	if last := t.Last[kind]; other || last == nil || last.Outcome == journal.OutcomeDone {
		return time.Time{}, true
	}
	return t.Again(kind, p, RetryAfter)
}

// Again returns when the thing may want an action of the kind once more, and whether it
// may. It may at once if there was none, or if something was observed of the thing since.
// Else what the action changed need not be seen yet, or was undone before anybody saw it,
// so it may after a rest; one that was only played, and would be again, changes nothing.
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
