package actions

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// When the reason of a hold changes, EKCO records the first change at once. Between later changes it waits at least
// minInterval, doubled each time up to maxInterval. Between changes that affect only details, such as counts, it waits
// at least minDetailsInterval.
const (
	minInterval        = time.Minute
	maxInterval        = time.Hour
	minDetailsInterval = 15 * time.Minute
)

// recordedReason has the time at which the reason of a hold was last recorded, and the number of recorded changes.
type recordedReason struct {
	at      time.Time
	changes int
}

// recordHold records that the step is held, or the whole action if step is "". It records a hold at once if another
// preflight held the step before, and at intervals if only the reason changes.
func (a *run) recordHold(step string, check Check) {
	before, is := a.record.Holds[step]
	held := journal.ActionHeld{
		Preflight: check.Preflight, Step: step, Reason: check.Verdict.Reason, Key: check.Verdict.Key, List: check.Verdict.List, NeedsPersonAfter: journal.Duration(check.Verdict.Grace),
	}
	recorded := a.reasons[step]
	switch {
	case !is || before.Preflight != held.Preflight:
		recorded = recordedReason{at: time.Now()}
	case recorded.isOutdated(before, held):
		recorded = recordedReason{at: time.Now(), changes: recorded.changes + 1}
	default:
		a.log.Debug("still held", "step", step, "preflight", held.Preflight, "reason", held.Reason)
		return
	}
	a.reasons[step] = recorded
	a.draftEvent(a.record.LastSeq, journal.TypeActionHeld, &held)
}

// endStepHold ends the hold of the step, if there is one.
func (a *run) endStepHold(step string) {
	delete(a.reasons, step)
	if held, ok := a.record.Holds[step]; ok {
		a.draftEvent(a.record.LastSeq, journal.TypeActionReleased, &journal.ActionReleased{Preflight: held.Preflight, Step: step})
	}
}

// isOutdated reports whether the newer of two holds by the same preflight must be recorded. Holds of old versions have
// no key, so the first hold with a key counts as a change.
func (s recordedReason) isOutdated(before, now journal.ActionHeld) bool {
	if before.Reason == now.Reason && before.NeedsPersonAfter == now.NeedsPersonAfter {
		return false
	}
	var interval time.Duration
	if s.changes > 0 {
		interval = fsm.Doubled(minInterval, maxInterval, s.changes-1)
	}
	if before.Key == now.Key {
		interval = max(interval, minDetailsInterval)
	}
	return time.Since(s.at) >= interval
}
