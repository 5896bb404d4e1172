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

// Table is a machine as data: EKCO draws its diagram from it and checks transitions against it.
type Table struct {
	Name string
	// Title heads its page in the docs; About says there what identifies its things.
	Title, About string

	Initial string
	// Entrances are other states than Initial in which a machine can begin.
	Entrances []Entrance
	Finals    []string
	// Over are the states of finished things, which may begin again. The state keeps the newest 1,000 of all machines.
	Over []string
	// Keep limits how many finished things of this machine are kept, if they are so many that they would displace
	// others; 0 sets no limit of its own.
	Keep        int
	Transitions []Transition
	// OwnFacts says that facts come in event types of the machine's own, so that thing.observed is refused.
	OwnFacts bool
	// Attention has the states in which a thing needs a person if it stays there.
	Attention map[journal.State]Attention
}

// Attention says after how long in a state a thing needs a person, and what the person can do.
type Attention struct {
	After  time.Duration
	Advice string
}

// Entrance is another way for a machine to begin.
type Entrance struct {
	Event, To string
	// When says, for people, what makes a machine begin so.
	When string
}

// Transition goes from any of From to To when Event happens.
type Transition struct {
	Event string
	From  []string
	To    string
	// When says, for people, what makes the event happen.
	When string
	// Tells returns the content of the transition's event; nil if the engine does not draft it from the table.
	Tells func(t *Thing, from journal.State, now time.Time) Telling
}

// Telling is the content of a transition's event besides the transition itself.
type Telling struct {
	Reason string
	// Since is when the new state's durations count from; zero means the event's own time.
	Since time.Time
	// Cause is the event that caused the transition, 0 if there is not just one.
	Cause uint64
}

// Events of the action machine.
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

// ActionTable returns the machine of an action.
func ActionTable() Table {
	return Table{
		Name: "action", Title: "An action", Initial: string(Requested), Finals: []string{string(Ended)},
		Transitions: []Transition{
			{actionPlan, Names(Requested), string(Running), "its steps and captured facts are fixed", nil},
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

// Names converts states for a table.
func Names[S ~string](states ...S) []string {
	out := make([]string, len(states))
	for i, state := range states {
		out[i] = string(state)
	}
	return out
}

// checker asks looplab/fsm which state an event enters. It has no callbacks, so asking has no effect.
type checker struct {
	fsm *fsm.FSM
	// ways has the first transition on the way from one state to another.
	ways map[way]*Transition
}

// way is from a machine's state to its goal.
type way struct{ from, to string }

func newChecker(table Table) checker {
	events := make(fsm.Events, len(table.Transitions))
	for i, t := range table.Transitions {
		events[i] = fsm.EventDesc{Name: t.Event, Src: t.From, Dst: t.To}
	}
	return checker{fsm.NewFSM(table.Initial, events, fsm.Callbacks{}), table.ways()}
}

// ways finds the shortest way between any two states, and keeps its first transition. Of two ways with the same length
// it takes the one whose transitions come first in the table. A state that cannot be reached has no way.
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

// all returns every state.
func (t Table) all() []string {
	states := append(t.states(), t.Initial)
	for _, transition := range t.Transitions {
		states = append(states, transition.To)
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// next returns the state that the event enters, and whether it may happen in from.
func (m checker) next(from, event string) (string, bool) {
	m.fsm.SetState(from)
	err := m.fsm.Event(context.Background(), event)
	if errors.As(err, new(fsm.NoTransitionError)) {
		return from, true
	}
	return m.fsm.Current(), err == nil
}

// stepAction changes the action's status if its table allows the event there. If not, it does nothing: a hold on a
// stalled action does not end the stall, for example.
func (s *State) stepAction(rec *journal.ActionRecord, event string) {
	if to, ok := s.cache.action.next(string(rec.Status), event); ok {
		rec.Status = journal.ActionStatus(to)
	}
}

// Tells returns a transition's [Telling] with this reason.
func Tells(reason string) func(*Thing, journal.State, time.Time) Telling {
	return func(t *Thing, _ journal.State, _ time.Time) Telling {
		return Telling{Reason: reason, Cause: t.Newest()}
	}
}
