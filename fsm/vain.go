package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// After an action that was in vain EKCO rests for firstBackOff before it asks for one of
// the kind about the thing again, and twice as long each time, up to lastBackOff.
const (
	firstBackOff = time.Minute
	lastBackOff  = time.Hour
)

// Vain is what EKCO began about a thing and did not come to its end, although
// nothing that it knows of it has changed: a live read did not find what the
// watch says, or another EKCO was at work.
type Vain struct {
	// Action was the last one. It ended At as Outcome, for Reason.
	Action  string          `json:"action"`
	Outcome journal.Outcome `json:"outcome"`
	Reason  string          `json:"reason"`
	At      time.Time       `json:"at"`
	// Times is how many there were in a row, while FactsSeq was the event with the
	// thing's facts.
	Times    int    `json:"times"`
	FactsSeq uint64 `json:"facts_seq"`
}

// noteVain notes whether an action was in vain. One that was cancelled ended
// because of new facts, or because a person wished it.
func (t *Thing) noteVain(e journal.Event, rec *journal.ActionRecord, ended *journal.ActionEnded) {
	switch ended.Outcome {
	case journal.OutcomeDone:
		delete(t.Vain, rec.Kind)
	case journal.OutcomeAbandoned, journal.OutcomeSuperseded:
		if rec.Cancelling != nil || rec.ByPerson() {
			return
		}
		times := 1
		if t.BacksOff(rec.Kind) {
			times += t.Vain[rec.Kind].Times
		}
		if t.Vain == nil {
			t.Vain = map[journal.ActionKind]*Vain{}
		}
		t.Vain[rec.Kind] = &Vain{Action: rec.ID, Outcome: ended.Outcome, Reason: ended.Reason, At: e.Time, Times: times, FactsSeq: t.FactsSeq}
	}
}

// BacksOff reports whether the last action of the kind about the thing was in vain, and
// nothing that is known of the thing has changed since.
func (t *Thing) BacksOff(kind journal.ActionKind) bool {
	vain := t.Vain[kind]
	return vain != nil && vain.FactsSeq == t.FactsSeq
}

// until returns when EKCO may ask for an action of the kind about the thing again.
func (v *Vain) until() time.Time {
	return v.At.Add(Doubled(firstBackOff, lastBackOff, v.Times-1))
}

// Doubled returns a pause that was doubled so many times, up to most.
func Doubled(pause, most time.Duration, times int) time.Duration {
	for i := 0; i < times && pause < most; i++ {
		pause *= 2
	}
	return min(pause, most)
}

// rests reports whether it is too early to ask again. A clock that was set back
// to before the abandonment makes nobody wait.
func (v *Vain) rests(now time.Time) bool { return !now.Before(v.At) && now.Before(v.until()) }

func (v *Vain) why(noun string) string {
	return fmt.Sprintf("%s ended as %s at %s (%s), and what EKCO observes of the %s has not changed since; EKCO tries again when it changes, or at %s",
		v.Action, v.Outcome, Stamp(v.At), v.Reason, noun, Stamp(v.until()))
}
