package fsm

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// minClockDifference is the difference below which EKCO takes two readings as readings of the same clock. Such readings
// differ a little, because appending an event takes time.
const minClockDifference = time.Second

// Wrong reports whether EKCO knows that its clock and the API server's differ too much; see [journal.FarApart].
func (c ClockState) Wrong() bool { return journal.FarApart(c.Skew) }

// foldJumped folds a jump of the clock. It moves all recorded times by the same amount, so that no age changes, and
// starts the settling period again.
func (s *State) foldJumped(e journal.Event, p *journal.ClockJumped) {
	s.applyJump(e, time.Duration(p.By))
	s.Clock.Skew = nil
	if !s.API.SettlingFrom.IsZero() {
		s.API.SettlingFrom = e.Time
	}
}

func (s *State) applyJump(e journal.Event, by time.Duration) {
	m := shiftBy(by)
	s.moveTimes(m)
	s.visitSteps(func(step *journal.StepRecord) { m.apply(&step.NextTry) })
	s.Clock.JumpedAt, s.Clock.Jump = e.Time, journal.Duration(by)
}

// adoptClock converts the recorded times to the clock of the operator that starts. Within one boot of the machine, the
// monotonic clock shows how long EKCO did not run. After another boot this is unknown, because the clock may be wrong:
// ages that allow a destructive action then stay as they were at EKCO's last event. If the clock is known to be wrong,
// these ages start at zero.
func (s *State) adoptClock(e journal.Event, p *journal.OperatorStarted) {
	zero := e.Time.Add(-time.Duration(p.Uptime))
	switch {
	case p.BootID != "" && p.BootID == s.Clock.BootID:
		if by := zero.Sub(s.Clock.Zero); by.Abs() >= minClockDifference {
			s.applyJump(e, by)
		}
		zero = s.Clock.Zero
	case s.Clock.LastSeq > 0:
		away := e.Time.Sub(s.Clock.LastAt)
		s.moveAges(s.Clock.LastSeq, shiftBy(away))
	}
	if journal.FarApart(p.ClockSkew) {
		s.moveAges(e.Seq, func(time.Time) time.Time { return e.Time })
	}
	s.moveTimes(limitTo(e.Time))
	s.Clock.BootID, s.Clock.Zero, s.Clock.Skew = p.BootID, zero, p.ClockSkew
}

// noteOperator stores the last event that a running operator wrote. It skips the types of events that a starting
// operator appends before operator.started: their times are already by the new clock.
func (s *State) noteOperator(e journal.Event) {
	switch {
	case e.Actor != ActorOperator && !strings.HasPrefix(e.Actor, observerPrefix), e.Subject.Kind == journal.JournalSubject.Kind:
	case e.Type == journal.TypeActionAdopted, e.Type == journal.TypeActionPlanned, e.Type == journal.TypeActionEnded:
	default:
		s.Clock.LastSeq, s.Clock.LastAt = e.Seq, e.Time
	}
}

// observerPrefix is the prefix of the names of observers as actors.
const observerPrefix = "observer/"

// timeChange is a function that returns the new value of a recorded time.
type timeChange func(time.Time) time.Time

// apply changes a time by the function, unless the time is zero.
func (m timeChange) apply(t *time.Time) {
	if !t.IsZero() {
		*t = m(*t)
	}
}

func shiftBy(by time.Duration) timeChange {
	return func(t time.Time) time.Time { return t.Add(by) }
}

func limitTo(now time.Time) timeChange {
	return func(t time.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t
	}
}

// moveAges changes the times whose age decides whether a destructive action is allowed: the times that machines visit
// in VisitAges; the ends of actions and steps; failed attempts; contests; and pauses that were set at or before the
// event upTo.
func (s *State) moveAges(upTo uint64, m timeChange) {
	for _, t := range s.Things {
		for kind, failed := range t.Failed {
			moved := *failed // a copy, because readers may use the old value
			m.apply(&moved.At)
			t.Failed[kind] = &moved
		}
		for kind, last := range t.Last {
			moved := *last // a copy for the same reason
			m.apply(&moved.At)
			t.Last[kind] = &moved
		}
		for key, contest := range t.Contests {
			moved := *contest
			m.apply(&moved.Last)
			m.apply(&moved.Before)
			t.Contests[key] = &moved
		}
		t.machine.VisitAges(t, m.apply)
	}
	for _, contests := range s.Inherited {
		for _, contest := range contests {
			m.apply(&contest.Last)
			m.apply(&contest.Before)
		}
	}
	for kind, at := range s.EndedAt {
		s.EndedAt[kind] = m(at)
	}
	s.visitSteps(func(step *journal.StepRecord) { m.apply(&step.DoneAt) })
	for key, pause := range s.Pauses {
		if pause.Seq <= upTo {
			s.Pauses[key] = pauseFrom(pause, m(pause.At))
		}
	}
}

// pauseFrom returns the pause with another start and the same length.
func pauseFrom(p PauseState, at time.Time) PauseState {
	if !p.Until.IsZero() {
		p.Until = p.Until.Add(at.Sub(p.At))
	}
	p.At = at
	return p
}

// moveTimes changes all recorded times that are by EKCO's clock.
func (s *State) moveTimes(m timeChange) {
	s.moveAges(s.Seq, m)
	for _, t := range []*time.Time{
		&s.Journal.SalvagedAt, &s.Journal.OutdatedAt, &s.Journal.LostFrom, &s.Journal.ReplacedAt, &s.Journal.AdoptedAt,
		&s.Operator.StartedAt, &s.Operator.StoppedAt, &s.API.LostAt, &s.API.SettlingFrom,
		&s.Clock.Zero, &s.Clock.LastAt, &s.Clock.JumpedAt,
	} {
		m.apply(t)
	}
	for _, t := range s.Things {
		m.apply(&t.Since)
		t.machine.VisitOtherTimes(t, m.apply)
	}
	for _, rec := range s.Actions {
		m.apply(&rec.RequestedAt)
		rec.Warned = slices.Clone(rec.Warned) // readers may use the old slice
		for i := range rec.Warned {
			m.apply(&rec.Warned[i].At)
		}
		m.applyToHolds(rec)
	}
	s.visitSteps(func(step *journal.StepRecord) {
		m.apply(&step.StartedAt)
		m.apply(&step.KeptFrom)
	})
	for i := range s.Refusals {
		m.apply(&s.Refusals[i].Since)
	}
}

// applyToHolds changes the times since which an action waits. It copies HeldSince, because readers may use the map.
func (m timeChange) applyToHolds(rec *journal.ActionRecord) {
	m.apply(&rec.StalledAt)
	rec.HeldSince = maps.Clone(rec.HeldSince)
	for step, since := range rec.HeldSince {
		rec.HeldSince[step] = m(since)
	}
}

// visitSteps calls visit with each step of the open actions, and stores the changed step.
func (s *State) visitSteps(visit func(*journal.StepRecord)) {
	for _, rec := range s.Actions {
		if len(rec.Steps) == 0 {
			continue
		}
		s.unshare(rec)
		for id, step := range rec.Steps {
			visit(&step)
			rec.Steps[id] = step
		}
	}
}

// restartTimes changes the times of an action from a mirror, because they are by another clock: ages of done steps and
// waits for a next attempt start again at now, and no time is later than now.
func restartTimes(rec *journal.ActionRecord, now time.Time) {
	m := limitTo(now)
	m.apply(&rec.RequestedAt)
	m.applyToHolds(rec)
	for id, step := range rec.Steps {
		m.apply(&step.StartedAt)
		m.apply(&step.KeptFrom)
		if step.Done() {
			step.DoneAt = now
		}
		step.NextTry = time.Time{}
		rec.Steps[id] = step
	}
}
