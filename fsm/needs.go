package fsm

import "github.com/replicatedhq/ekco/journal"

// Needs lists the events that a replay without a snapshot needs to reach the same state, in addition to all events of
// open actions.
type Needs struct {
	Events  map[uint64]bool
	Actions map[string]bool
	// ClockFrom is an event number. The replay also needs all later events that change recorded times, such as
	// clock.jumped.
	ClockFrom uint64
}

// Event adds an event; 0 means none.
func (n *Needs) Event(seq uint64) {
	if seq != 0 {
		n.Events[seq] = true
	}
}

// Since adds an event, and all later events that change recorded times.
func (n *Needs) Since(seq uint64) {
	n.Event(seq)
	n.ClockFrom = min(n.ClockFrom, seq)
}

// Action adds all events of an action; "" means no action.
func (n *Needs) Action(id string) {
	if id != "" {
		n.Actions[id] = true
	}
}

// Ended adds all events of an action that has ended, and facts, the event with the thing's facts at that time. Without
// facts, the replay would not know the thing, and would not store the end.
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
			if s.Time.Before(contest.retryAt().Add(contestWindow)) {
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

// Keeps reports whether a replay needs the event.
func (n Needs) Keeps(e journal.Event) bool {
	return n.Events[e.Seq] || n.Actions[e.Action] || (e.Seq >= n.ClockFrom && movesTimes(e.Type))
}

func movesTimes(typ journal.Type) bool {
	return typ == journal.TypeClockJumped || typ == journal.TypeOperatorStarted
}

// MayPrune reports whether EKCO may remove old files next to the journal. In safe mode it must not, because they may
// have events that the journal lost. It also must not if it knows that its clock is wrong.
func (s *State) MayPrune() bool { return !s.Journal.SafeMode() && !s.Clock.Wrong() }
