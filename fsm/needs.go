package fsm

import "github.com/replicatedhq/ekco/journal"

// Needs is what a replay without snapshot needs of the journal to come to the same
// state again, besides the events of open actions.
type Needs struct {
	Events  map[uint64]bool
	Actions map[string]bool
	// ClockFrom is from which event on those are needed that move the times on record.
	ClockFrom uint64
}

// Event adds an event; 0 means none.
func (n *Needs) Event(seq uint64) {
	if seq != 0 {
		n.Events[seq] = true
	}
}

// Since adds an event and all later ones that move the times on record.
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

// Ended adds all events of an action that has ended, and the facts by which the journal
// knew its thing then: of one that is not known, no end is kept. Ages may count from
// these facts.
func (n *Needs) Ended(action string, facts uint64) {
	n.Action(action)
	if facts != 0 {
		n.Since(facts)
	}
}

// Needs says what of the journal the state cannot do without.
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

// Keeps reports whether the event is one that the state cannot do without.
func (n Needs) Keeps(e journal.Event) bool {
	return n.Events[e.Seq] || n.Actions[e.Action] || (e.Seq >= n.ClockFrom && movesTimes(e.Type))
}

// movesTimes reports whether an event moves the times on record.
func movesTimes(typ journal.Type) bool {
	return typ == journal.TypeClockJumped || typ == journal.TypeOperatorStarted
}

// MayPrune reports whether old files beside the journal may be removed: not in safe mode, where they
// may hold what was lost, nor while the clock is known to be wrong.
func (s *State) MayPrune() bool { return !s.Journal.SafeMode() && !s.Clock.Wrong() }
