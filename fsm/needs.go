package fsm

import "github.com/replicatedhq/ekco/journal"

// Needs is which events a replay without a snapshot needs for the same state, besides those of open actions.
type Needs struct {
	Events  map[uint64]bool
	Actions map[string]bool
	// ClockFrom is the first event from which on it needs the events that move recorded times.
	ClockFrom uint64
}

// Event adds an event; 0 means none.
func (n *Needs) Event(seq uint64) {
	if seq != 0 {
		n.Events[seq] = true
	}
}

// Since adds an event, and all later ones that move recorded times.
func (n *Needs) Since(seq uint64) {
	n.Event(seq)
	n.ClockFrom = min(n.ClockFrom, seq)
}

// Action adds all events of an action; "" means none.
func (n *Needs) Action(id string) {
	if id != "" {
		n.Actions[id] = true
	}
}

// Ended adds all events of an action that has ended, and the event with its thing's facts at that time: a replay keeps
// no end for an unknown thing. Ages may count from these facts.
func (n *Needs) Ended(action string, facts uint64) {
	n.Action(action)
	if facts != 0 {
		n.Since(facts)
	}
}

// Needs returns which events of the journal a replay to this state needs.
func (s *State) Needs() Needs {
	needs := Needs{Events: map[uint64]bool{}, Actions: map[string]bool{}, ClockFrom: s.Seq}
	for _, t := range s.Things {
		for _, seq := range []uint64{t.AddedSeq, t.FactsSeq, t.GoneSeq, t.EnteredSeq} {
			needs.Event(seq)
		}
		for _, last := range t.Last {
			needs.Ended(last.Action, last.FactsSeq)
		}
		for _, contest := range t.Contests {
			if s.Time.Before(contest.until().Add(contestWindow)) {
				needs.Ended(contest.Action, contest.FactsSeq)
			}
		}
		t.machine.Needs(t, &needs)
	}
	if s.Journal.AdoptedSeq != 0 {
		needs.Since(s.Journal.AdoptedSeq)
	}
	for _, pause := range s.Pauses {
		needs.Since(pause.Seq)
	}
	return needs
}

// Keeps reports whether the event is one of them.
func (n Needs) Keeps(e journal.Event) bool {
	return n.Events[e.Seq] || n.Actions[e.Action] || (e.Seq >= n.ClockFrom && movesTimes(e.Type))
}

func movesTimes(typ journal.Type) bool {
	return typ == journal.TypeClockJumped || typ == journal.TypeOperatorStarted
}

// MayPrune reports whether old files next to the journal may be removed: not in safe mode, since they may hold what the
// journal lost, and not while the clock is known to be wrong.
func (s *State) MayPrune() bool { return !s.Journal.SafeMode() && !s.Clock.Wrong() }
