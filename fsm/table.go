package fsm

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/looplab/fsm"

	"github.com/replicatedhq/ekco/journal"
)

// Table has the states and transitions of a machine as data. EKCO draws the diagram from it and checks transitions
// against it.
type Table struct {
	Name string
	// Title is the title of the machine's section in the docs. About is the text there that says what identifies a
	// thing.
	Title, About string

	Initial string
	// Entrances are the ways in which a thing can begin in another state than Initial.
	Entrances []Entrance
	Finals    []string
	// Over are the states of finished things. A finished thing can leave such a state again. [State] keeps only the
	// newest 1,000 finished things of all machines (maxFinished).
	Over []string
	// Normal are the states in which a thing needs no attention and nothing is under way. The states in Over count as
	// normal too.
	Normal []string
	// Keep limits how many finished things of this machine [State] keeps, for a machine with so many that they would
	// displace finished things of other machines; 0 means no separate limit.
	Keep        int
	Transitions []Transition
	// OwnFacts is set if the machine has its own event types for facts. EKCO then does not accept thing.observed for
	// it.
	OwnFacts bool
	// Attention has the states in which a thing needs a person if it stays in the state for too long.
	Attention map[journal.State]Attention
}

// Attention says after how long in a state a thing needs a person, and what the person can do.
type Attention struct {
	After  time.Duration
	Advice string
}

// Entrance is a way in which a thing begins in state To.
type Entrance struct {
	Event, To string
	// When says, for people, when a thing begins like this.
	When string
}

// Transition leads from each of the states From to the state To. Event is its name.
type Transition struct {
	Event string
	From  []string
	To    string
	// When says, for people, when the transition happens.
	When string
	// Report returns the content of the transition's event. It is nil in the table of actions, whose transitions are
	// not events.
	Report func(t *Thing, from journal.State, now time.Time) Report
}

// Report is the content of a transition's event, in addition to the states.
type Report struct {
	Reason string
	// Since is when the new state began; zero means the time of the event.
	Since time.Time
	// Cause is the event that caused the transition; 0 if no single event did.
	Cause uint64
}

// The names of the transitions of an action.
const (
	actionPlan    = "plan"
	actionHold    = "hold"
	actionRelease = "release"
	actionStall   = "stall"
	actionRetry   = "retry"
	actionCancel  = "cancel"
	actionProceed = "proceed"
	actionEnd     = "end"
)

// ActionTable returns the table of an action.
func ActionTable() Table {
	return Table{
		Name: "action", Title: "An action", Initial: string(Requested), Finals: []string{string(Ended)},
		Transitions: []Transition{
			{actionPlan, Names(Requested), string(Running), "its steps are planned, and its facts captured", nil},
			{actionHold, Names(Requested, Running), string(Held), "a preflight failed", nil},
			{actionRelease, Names(Held), string(Running), "no preflight holds it any more", nil},
			{actionStall, Names(Requested, Running, Held, Cancelling), string(Stalled), "its retry budget is spent", nil},
			{actionRetry, Names(Held, Stalled), string(Running), "an administrator gave it a new budget", nil},
			{actionCancel, Names(Requested, Running, Held, Stalled), string(Cancelling), "it was cancelled before its point of no return", nil},
			{actionProceed, Names(Cancelling), string(Running), "it passed the point of no return before the cancel took effect", nil},
			{actionEnd, Names(Requested, Running, Held, Stalled, Cancelling), string(Ended), "it is over", nil},
		},
	}
}

// Names converts states to strings for a [Table].
func Names[S ~string](states ...S) []string {
	out := make([]string, len(states))
	for i, state := range states {
		out[i] = string(state)
	}
	return out
}

// checker checks transitions of a table with looplab/fsm. It uses no callbacks, so a check has no side effect.
type checker struct {
	fsm *fsm.FSM
	// ways has, for each state and goal, the first transition on the way to the goal.
	ways map[way]*Transition
}

// way identifies a way by its first state and its goal.
type way struct{ from, to string }

func newChecker(table Table) checker {
	events := make(fsm.Events, len(table.Transitions))
	for i, t := range table.Transitions {
		events[i] = fsm.EventDesc{Name: t.Event, Src: t.From, Dst: t.To}
	}
	return checker{fsm.NewFSM(table.Initial, events, fsm.Callbacks{}), table.ways()}
}

// ways returns the first transition on the shortest way between any two states. Of two ways of the same length, it uses
// the one whose transitions come first in the table. A goal that cannot be reached has no entry.
func (t Table) ways() map[way]*Transition {
	ways := map[way]*Transition{}
	for _, from := range t.states() {
		reached := []string{from}
		for len(reached) > 0 {
			at := reached[0]
			reached = reached[1:]
			for i := range t.Transitions {
				next := &t.Transitions[i]
				key := way{from, next.To}
				if next.To == from || ways[key] != nil || !slices.Contains(next.From, at) {
					continue
				}
				ways[key] = cmp.Or(ways[way{from, at}], next)
				reached = append(reached, next.To)
			}
		}
	}
	return ways
}

// states returns every state that has a transition out of it.
func (t Table) states() []string {
	var all []string
	for _, transition := range t.Transitions {
		all = append(all, transition.From...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t Table) allStates() []string {
	states := append(t.states(), t.Initial)
	for _, transition := range t.Transitions {
		states = append(states, transition.To)
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// next returns the state after the transition event from state from, and whether the table allows the transition.
func (m checker) next(from, event string) (string, bool) {
	m.fsm.SetState(from)
	err := m.fsm.Event(context.Background(), event)
	if errors.As(err, new(fsm.NoTransitionError)) {
		return from, true
	}
	return m.fsm.Current(), err == nil
}

// changeStatus changes the action's status if the table of actions allows the transition in that status. If not, it
// does nothing. For example, a hold does not change the status of a stalled action.
func (s *State) changeStatus(rec *journal.ActionRecord, event string) {
	if to, ok := s.cache.action.next(string(rec.Status), event); ok {
		rec.Status = journal.ActionStatus(to)
	}
}

// ReportReason returns a function for [Transition.Report]. The Report has this reason, and the newest event as its
// cause.
func ReportReason(reason string) func(*Thing, journal.State, time.Time) Report {
	return func(t *Thing, _ journal.State, _ time.Time) Report {
		return Report{Reason: reason, Cause: t.Newest()}
	}
}
