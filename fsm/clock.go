package fsm

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// sameClock is how far two readings of one clock may differ: appending an event takes time between them.
const sameClock = time.Second

// Wrong reports whether EKCO's clock and the API server's are known to be far apart.
func (c ClockState) Wrong() bool { return journal.FarApart(c.Skew) }

// foldJumped moves every recorded time with the clock, so that no age changes, and starts the settling period again.
func (s *State) foldJumped(e journal.Event, p *journal.ClockJumped) {
	s.jump(e, time.Duration(p.By))
	s.Clock.Skew = nil
	if !s.API.SettlingFrom.IsZero() {
		s.API.SettlingFrom = e.Time
	}
}

func (s *State) jump(e journal.Event, by time.Duration) {
	m := later(by)
	s.moveTimes(m)
	s.steps(func(step *journal.StepRecord) { m.to(&step.NextTry) })
	s.Clock.JumpedAt, s.Clock.Jump = e.Time, journal.Duration(by)
}

// adoptClock moves the recorded times to the clock of the operator that starts. Within one boot, the machine's
// monotonic clock gives how long EKCO was away. After another boot nobody knows, since the clock may be wrong: ages
// that allow a destructive action then stay what they were at EKCO's last event. If the clock is known to be wrong now,
// they start at zero.
func (s *State) adoptClock(e journal.Event, p *journal.OperatorStarted) {
	zero := e.Time.Add(-time.Duration(p.Uptime))
	switch {
	case p.BootID != "" && p.BootID == s.Clock.BootID:
		if by := zero.Sub(s.Clock.Zero); by.Abs() >= sameClock {
			s.jump(e, by)
		}
		zero = s.Clock.Zero
	case s.Clock.LastSeq > 0:
		away := e.Time.Sub(s.Clock.LastAt)
		s.moveAges(s.Clock.LastSeq, later(away))
	}
	if journal.FarApart(p.ClockSkew) {
		s.moveAges(e.Seq, func(time.Time) time.Time { return e.Time })
	}
	s.moveTimes(notAfter(e.Time))
	s.Clock.BootID, s.Clock.Zero, s.Clock.Skew = p.BootID, zero, p.ClockSkew
}

// noteOperator notes when an operator last wrote. Events that a start appends before operator.started do not count:
// they already have another clock.
func (s *State) noteOperator(e journal.Event) {
	switch {
	case e.Actor != ActorOperator && !strings.HasPrefix(e.Actor, actorsObserving), e.Subject.Kind == journal.JournalSubject.Kind:
	case e.Type == journal.TypeActionAdopted, e.Type == journal.TypeActionPlanned, e.Type == journal.TypeActionEnded:
	default:
		s.Clock.LastSeq, s.Clock.LastAt = e.Seq, e.Time
	}
}

// actorsObserving is the prefix of the actors that write facts.
const actorsObserving = "observer/"

// moved maps a recorded time to its new value.
type moved func(time.Time) time.Time

// to moves a time, unless it is zero.
func (m moved) to(t *time.Time) {
	if !t.IsZero() {
		*t = m(*t)
	}
}

func later(by time.Duration) moved {
	return func(t time.Time) time.Time { return t.Add(by) }
}

func notAfter(now time.Time) moved {
	return func(t time.Time) time.Time {
		if t.After(now) {
			return now
		}
		return t
	}
}

// moveAges moves the times from which EKCO counts whether a destructive action is allowed: those of the machines, of
// done steps, of failed attempts, and of pauses that were set no later than the given event.
func (s *State) moveAges(upTo uint64, m moved) {
	for _, t := range s.Things {
		for kind, failed := range t.Failed {
			moved := *failed // readers may hold the former one
			m.to(&moved.At)
			t.Failed[kind] = &moved
		}
		for kind, last := range t.Last {
			moved := *last // here too
			m.to(&moved.At)
			t.Last[kind] = &moved
		}
		for key, contest := range t.Contests {
			moved := *contest
			m.to(&moved.Last)
			m.to(&moved.Before)
			t.Contests[key] = &moved
		}
		t.machine.Ages(t, m.to)
	}
	for _, contests := range s.Inherited {
		for _, contest := range contests {
			m.to(&contest.Last)
			m.to(&contest.Before)
		}
	}
	for kind, at := range s.EndedAt {
		s.EndedAt[kind] = m(at)
	}
	s.steps(func(step *journal.StepRecord) { m.to(&step.DoneAt) })
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

// moveTimes moves every recorded time of EKCO's clock.
func (s *State) moveTimes(m moved) {
	s.moveAges(s.Seq, m)
	for _, t := range []*time.Time{
		&s.Journal.SalvagedAt, &s.Journal.OutdatedAt, &s.Journal.LostFrom, &s.Journal.ReplacedAt, &s.Journal.AdoptedAt,
		&s.Operator.StartedAt, &s.Operator.StoppedAt, &s.API.LostAt, &s.API.SettlingFrom,
		&s.Clock.Zero, &s.Clock.LastAt, &s.Clock.JumpedAt,
	} {
		m.to(t)
	}
	for _, t := range s.Things {
		m.to(&t.Since)
		t.machine.Past(t, m.to)
	}
	for _, rec := range s.Actions {
		m.to(&rec.RequestedAt)
		rec.Warned = slices.Clone(rec.Warned) // readers may hold the former ones
		for i := range rec.Warned {
			m.to(&rec.Warned[i].At)
		}
		m.held(rec)
	}
	s.steps(func(step *journal.StepRecord) {
		m.to(&step.StartedAt)
		m.to(&step.KeptFrom)
	})
	for i := range s.Refusals {
		m.to(&s.Refusals[i].Since)
	}
}

// held moves the times since which an action waits. Readers may hold its map.
func (m moved) held(rec *journal.ActionRecord) {
	m.to(&rec.StalledAt)
	rec.HeldSince = maps.Clone(rec.HeldSince)
	for step, since := range rec.HeldSince {
		rec.HeldSince[step] = m(since)
	}
}

// steps visits the steps of the open actions.
func (s *State) steps(visit func(*journal.StepRecord)) {
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

// restartTimes restarts the waiting times of an action of another journal, since its times are by another clock.
func restartTimes(rec *journal.ActionRecord, now time.Time) {
	m := notAfter(now)
	m.to(&rec.RequestedAt)
	m.held(rec)
	for id, step := range rec.Steps {
		m.to(&step.StartedAt)
		m.to(&step.KeptFrom)
		if step.Done() {
			step.DoneAt = now
		}
		step.NextTry = time.Time{}
		rec.Steps[id] = step
	}
}
