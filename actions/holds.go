package actions

import (
	"strings"
	"time"
	"unicode"

	"github.com/replicatedhq/ekco/journal"
)

// Between two records of one hold whose reason changes: at first none, then
// firstRest, doubled each time up to lastRest. If only numbers change, which many
// reasons have, it is numbersRest at least.
const (
	firstRest   = time.Minute
	lastRest    = time.Hour
	numbersRest = 15 * time.Minute
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
func (a *run) hold(step, preflight, reason string) {
	held, is := a.record.Holds[step]
	said := a.said[step]
	switch {
	case !is || held.Preflight != preflight:
		said = spoken{at: time.Now()}
	case said.worthSaying(held.Reason, reason):
		said = spoken{at: time.Now(), changes: said.changes + 1}
	default:
		a.log.Debug("still held", "step", step, "preflight", preflight, "reason", reason)
		return
	}
	a.said[step] = said
	a.note(a.record.LastSeq, journal.TypeActionHeld, &journal.ActionHeld{Preflight: preflight, Step: step, Reason: reason})
}

// release ends the hold of the step, if there is one.
func (a *run) release(step string) {
	delete(a.said, step)
	if held, ok := a.record.Holds[step]; ok {
		a.note(a.record.LastSeq, journal.TypeActionReleased, &journal.ActionReleased{Preflight: held.Preflight, Step: step})
	}
}

func (s spoken) worthSaying(before, now string) bool {
	if before == now {
		return false
	}
	var rest time.Duration
	if s.changes > 0 {
		rest = firstRest
		for range s.changes - 1 {
			rest = min(2*rest, lastRest)
		}
	}
	if gist(before) == gist(now) {
		rest = max(rest, numbersRest)
	}
	return time.Since(s.at) >= rest
}

// gist returns a reason without its numbers, which may have letters in them, as
// times, durations and addresses do.
func gist(reason string) string {
	number := false
	return strings.Map(func(r rune) rune {
		number = unicode.IsDigit(r) || number && (unicode.IsLetter(r) || r == '.' || r == ':')
		if number {
			return -1
		}
		return r
	}, reason)
}
