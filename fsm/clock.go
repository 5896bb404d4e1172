package fsm

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// sameClock is how far two readings of one clock may be apart: between them lies
// what an append takes.
const sameClock = time.Second

// Wrong reports whether the clock and the API server's are far apart, as far as
// that is known.
func (c ClockState) Wrong() bool { return journal.FarApart(c.Skew) }

// foldJumped brings every time to the clock as it is now, so that nothing is
// older or younger than it was a moment ago, and begins to settle anew.
func (s *State) foldJumped(e journal.Event, p *journal.ClockJumped) {
	s.jump(e, time.Duration(p.By))
	s.Clock.Skew = nil
	if !s.API.SettlingFrom.IsZero() {
		s.API.SettlingFrom = e.Time
	}
}

func (s *State) jump(e journal.Event, by time.Duration) {
	m := later(by)
	s.past(m)
	s.steps(func(step *journal.StepRecord) { m.to(&step.NextTry) })
	s.Clock.JumpedAt, s.Clock.Jump = e.Time, journal.Duration(by)
}

// takeUpClock brings the times on record to the clock of the operator that
// starts. Within one boot of the machine its monotonic clock says how long EKCO
// was away. Else nobody knows, since two readings of a clock that may be wrong
// say nothing: what leads to something destructive is then as old as it was when
// EKCO last wrote. It counts anew if the clock is known to be wrong now.
func (s *State) takeUpClock(e journal.Event, p *journal.OperatorStarted) {
	zero := e.Time.Add(-time.Duration(p.Uptime))
	switch {
	case p.BootID != "" && p.BootID == s.Clock.BootID:
		if by := zero.Sub(s.Clock.Zero); by.Abs() >= sameClock {
			s.jump(e, by)
		}
		zero = s.Clock.Zero
	case s.Clock.LastSeq > 0:
		away := e.Time.Sub(s.Clock.LastAt)
		s.ages(s.Clock.LastSeq, later(away))
	}
	if journal.FarApart(p.ClockSkew) {
		s.ages(e.Seq, func(time.Time) time.Time { return e.Time })
	}
	s.past(notAfter(e.Time))
	s.Clock.BootID, s.Clock.Zero, s.Clock.Skew = p.BootID, zero, p.ClockSkew
}

// noteOperator remembers when an operator was last at work. What a start
// appends before operator.started is by another clock already, and does not
// count.
func (s *State) noteOperator(e journal.Event) {
	switch {
	case e.Actor != ActorOperator && !strings.HasPrefix(e.Actor, actorsObserving), e.Subject.Kind == journal.JournalSubject.Kind:
	case e.Type == journal.TypeActionAdopted, e.Type == journal.TypeActionPlanned, e.Type == journal.TypeActionEnded:
	default:
		s.Clock.LastSeq, s.Clock.LastAt = e.Seq, e.Time
	}
}

// actorsObserving begins the names of those who write facts.
const actorsObserving = "observer/"

// moved says what becomes of a time.
type moved func(time.Time) time.Time

// to moves a time that is set.
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

// ages moves the times from which is counted whether something destructive may
// be done: those of the machines, since when a step is done, an action in vain, and a pause in force that was set no later than by the given event.
func (s *State) ages(upTo uint64, m moved) {
	for _, t := range s.Things {
		for kind, vain := range t.Vain {
			moved := *vain // others may hold the former one
			m.to(&moved.At)
			t.Vain[kind] = &moved
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

// pauseFrom returns the pause as if it had begun at that time: as long as it was.
func pauseFrom(p PauseState, at time.Time) PauseState {
	if !p.Until.IsZero() {
		p.Until = p.Until.Add(at.Sub(p.At))
	}
	p.At = at
	return p
}

// past moves every time at which something was by EKCO's clock.
func (s *State) past(m moved) {
	s.ages(s.Seq, m)
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
		rec.Warned = slices.Clone(rec.Warned) // others may hold the former ones
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

// held moves since when an action waits. Others may hold its map.
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
		s.own(rec)
		for id, step := range rec.Steps {
			visit(&step)
			rec.Steps[id] = step
		}
	}
}

// countAnew makes an action of another journal, whose times are by another
// clock, wait from now on for what takes a time.
func countAnew(rec *journal.ActionRecord, now time.Time) {
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
