package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// After a failed attempt EKCO waits for minBackOff before it requests an action of the same kind about the thing
// again. The wait doubles with each further failed attempt, up to maxBackOff.
const (
	minBackOff = time.Minute
	maxBackOff = time.Hour
)

// FailedAttempts counts consecutive actions of a kind about a thing that EKCO requested automatically and that were
// abandoned or superseded although the facts did not change. Possible causes: a live read contradicted the watch, or
// another EKCO acted.
type FailedAttempts struct {
	// Action is the id of the last of these actions. Outcome, Reason and At say how, why and when it ended.
	Action  string          `json:"action"`
	Outcome journal.Outcome `json:"outcome"`
	Reason  string          `json:"reason"`
	At      time.Time       `json:"at"`
	// Times is the number of consecutive failed attempts. FactsSeq is the number of the event with the newest facts about
	// the thing at the time when the last attempt ended.
	Times    int    `json:"times"`
	FactsSeq uint64 `json:"facts_seq"`
}

// noteFailure updates the failed attempts at the end of an action. A cancelled action and a person's action are not
// failed attempts: a cancelled one ended because of new facts or a person's command.
func (t *Thing) noteFailure(e journal.Event, rec *journal.ActionRecord, ended *journal.ActionEnded) {
	switch ended.Outcome {
	case journal.OutcomeDone:
		delete(t.Failed, rec.Kind)
	case journal.OutcomeAbandoned, journal.OutcomeSuperseded:
		if rec.Cancelling != nil || rec.ByPerson() {
			return
		}
		times := 1
		if t.BacksOff(rec.Kind) {
			times += t.Failed[rec.Kind].Times
		}
		if t.Failed == nil {
			t.Failed = map[journal.ActionKind]*FailedAttempts{}
		}
		t.Failed[rec.Kind] = &FailedAttempts{Action: rec.ID, Outcome: ended.Outcome, Reason: ended.Reason, At: e.Time, Times: times, FactsSeq: t.FactsSeq}
	}
}

// BacksOff reports whether the last action of the kind about the thing was a failed attempt, and the thing's facts have
// not changed since.
func (t *Thing) BacksOff(kind journal.ActionKind) bool {
	failed := t.Failed[kind]
	return failed != nil && failed.FactsSeq == t.FactsSeq
}

func (v *FailedAttempts) retryAt() time.Time {
	return v.At.Add(Doubled(minBackOff, maxBackOff, v.Times-1))
}

// Doubled returns the pause, doubled the given number of times, but not more than limit.
func Doubled(pause, limit time.Duration, times int) time.Duration {
	for i := 0; i < times && pause < limit; i++ {
		pause *= 2
	}
	return min(pause, limit)
}

// tooEarly reports whether it is too early for another attempt. If now is before the last attempt, the clock was set
// back, and tooEarly returns false.
func (v *FailedAttempts) tooEarly(now time.Time) bool {
	return !now.Before(v.At) && now.Before(v.retryAt())
}

func (v *FailedAttempts) reason(noun string) string {
	return fmt.Sprintf("%s ended as %s at %s (%s), and what EKCO observes of the %s has not changed since; EKCO tries again when it changes, or at %s",
		v.Action, v.Outcome, Stamp(v.At), v.Reason, noun, Stamp(v.retryAt()))
}
