package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// RetryAfter is how long EKCO waits before it repeats an action that ended early, unless the facts change before that.
const RetryAfter = 10 * time.Minute

// RetryChange is [Thing.RepeatDue] for an action that changes one object. The thing may request another one at once if
// there was none before, if the last one is done, or if the caller sets other: the last one made its change, or had
// another target.
func (t *Thing) RetryChange(kind journal.ActionKind, other bool, p Policy) (due time.Time, may bool) {
	if last := t.Last[kind]; other || last == nil || last.Outcome == journal.OutcomeDone {
		return time.Time{}, true
	}
	return t.RepeatDue(kind, p, RetryAfter)
}

// RepeatDue returns when the thing may want another action of this kind; may is false if it must want none. It may want
// one at once if there was none before, or if EKCO has recorded new facts since. After a dry run it may want a real
// action at once, but no other dry run, whose result would be the same. In all other cases EKCO may not have seen the
// effect of the last action yet, so retryAfter must pass first.
func (t *Thing) RepeatDue(kind journal.ActionKind, p Policy, retryAfter time.Duration) (due time.Time, may bool) {
	last := t.Last[kind]
	switch {
	case last == nil, t.FactsSeq > last.Seq:
		return time.Time{}, true
	case last.Outcome == journal.OutcomeDryRun && p.DryRun:
		return time.Time{}, false
	case last.Outcome == journal.OutcomeDryRun:
		return time.Time{}, true
	}
	return last.At.Add(retryAfter), true
}
