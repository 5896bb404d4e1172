package actions

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Between two records of one hold whose reason changes: at first none, then
// firstRest, doubled each time up to lastRest. If only details change, as counts do
// that many reasons have, it is detailsRest at least.
const (
	firstRest   = time.Minute
	lastRest    = time.Hour
	detailsRest = 15 * time.Minute
)

// spoken is when the reason of a hold was last recorded, and how often it had
// changed by then.
type spoken struct {
	at      time.Time
	changes int
}

// hold records that the step, or with "" the whole action, waits: at once if
// another preflight holds it than before, and now and then if the reason is
// another one.
func (a *run) hold(step string, check Check) {
	before, is := a.record.Holds[step]
	held := journal.ActionHeld{
		Preflight: check.Preflight, Step: step, Reason: check.Verdict.Reason, Key: check.Verdict.Key, List: check.Verdict.List, NeedsPersonAfter: journal.Duration(check.Verdict.Grace),
	}
	said := a.said[step]
	switch {
	case !is || before.Preflight != held.Preflight:
		said = spoken{at: time.Now()}
	case said.worthSaying(before, held):
		said = spoken{at: time.Now(), changes: said.changes + 1}
	default:
		a.log.Debug("still held", "step", step, "preflight", held.Preflight, "reason", held.Reason)
		return
	}
	a.said[step] = said
	a.note(a.record.LastSeq, journal.TypeActionHeld, &held)
}

// release ends the hold of the step, if there is one.
func (a *run) release(step string) {
	delete(a.said, step)
	if held, ok := a.record.Holds[step]; ok {
		a.note(a.record.LastSeq, journal.TypeActionReleased, &journal.ActionReleased{Preflight: held.Preflight, Step: step})
	}
}

// worthSaying compares two holds by one preflight. One that was recorded before there
// were keys has none, so the first key after it counts as another.
func (s spoken) worthSaying(before, now journal.ActionHeld) bool {
	if before.Reason == now.Reason && before.NeedsPersonAfter == now.NeedsPersonAfter {
		return false
	}
	var rest time.Duration
	if s.changes > 0 {
		rest = fsm.Doubled(firstRest, lastRest, s.changes-1)
	}
	if before.Key == now.Key {
		rest = max(rest, detailsRest)
	}
	return time.Since(s.at) >= rest
}
