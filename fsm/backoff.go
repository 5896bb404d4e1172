package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// After a failed attempt EKCO waits for firstBackOff before it requests another action of the kind about the thing, and
// twice as long each time, up to lastBackOff.
const (
	firstBackOff = time.Minute
	lastBackOff  = time.Hour
)

// FailedAttempts are attempts in a row that failed: EKCO began actions about a thing that were abandoned or superseded,
// although the known facts did not change. A live read contradicted the watch, or another EKCO was at work, for
// example.
type FailedAttempts struct {
	// Action was the last one. It ended At as Outcome, for Reason.
	Action  string          `json:"action"`
	Outcome journal.Outcome `json:"outcome"`
	Reason  string          `json:"reason"`
	At      time.Time       `json:"at"`
	// Times counts the attempts in a row. FactsSeq was the event with the thing's facts.
	Times    int    `json:"times"`
	FactsSeq uint64 `json:"facts_seq"`
}

// noteFailure notes whether an action was a failed attempt. A cancelled one ended because of new facts, or because a
// person wanted that.
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

// BacksOff reports whether the last action of the kind about the thing failed, and its known facts have not changed
// since.
func (t *Thing) BacksOff(kind journal.ActionKind) bool {
	failed := t.Failed[kind]
	return failed != nil && failed.FactsSeq == t.FactsSeq
}

// until returns when EKCO may request an action of the kind again.
func (v *FailedAttempts) until() time.Time {
	return v.At.Add(Doubled(firstBackOff, lastBackOff, v.Times-1))
}

// Doubled returns the pause doubled the given number of times, up to most.
func Doubled(pause, most time.Duration, times int) time.Duration {
	for i := 0; i < times && pause < most; i++ {
		pause *= 2
	}
	return min(pause, most)
}

// tooEarly reports whether it is too early for another attempt. A clock that was set back to before the last one causes
// no wait.
func (v *FailedAttempts) tooEarly(now time.Time) bool {
	return !now.Before(v.At) && now.Before(v.until())
}

func (v *FailedAttempts) why(noun string) string {
	return fmt.Sprintf("%s ended as %s at %s (%s), and what EKCO observes of the %s has not changed since; EKCO tries again when it changes, or at %s",
		v.Action, v.Outcome, Stamp(v.At), v.Reason, noun, Stamp(v.until()))
}
