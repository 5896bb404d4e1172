package fsm

import (
	"context"
	"errors"

	"github.com/looplab/fsm"

	"github.com/replicatedhq/ekco/journal"
)

// Table is a machine as data: what it is drawn from and checked by.
type Table struct {
	Name    string
	Initial string
	// Entrances are states other than Initial in which a machine can begin.
	Entrances   []Entrance
	Finals      []string
	Transitions []Transition
}

// Entrance is another beginning of a machine.
type Entrance struct {
	Event, To string
	// When says, for people, what makes a machine begin so.
	When string
}

// Transition leads from any of From to To when Event happens.
type Transition struct {
	Event string
	From  []string
	To    string
	// When says, for people, what makes the event happen.
	When string
}

// Events of the node machine.
const (
	nodeAdopted  = "adopted"
	nodeTraced   = "traced"
	nodeLost     = "lost"
	nodeReturned = "returned"
	nodeClear    = "clear"
	nodeCleared  = "cleared"
	nodePurge    = "purge"
	nodePurged   = "purged"
	nodeStopped  = "stopped"
	nodeGone     = "gone"
)

// NodeTable returns the machine of a node.
func NodeTable() Table {
	return Table{
		Name: "node", Initial: string(Healthy), Finals: []string{string(Purged)},
		Entrances: []Entrance{
			{nodeAdopted, string(Unknown), "an action is adopted for a node that the journal does not know"},
			{nodeTraced, string(Gone), "a person asked for a node that nobody knows, and something is left of it"},
		},
		Transitions: []Transition{
			{nodeLost, names(Healthy, Gone), string(Unknown), "the node has the unreachable taint"},
			{nodeClear, names(Unknown, Cleared, Purging), string(Clearing), "a clear-node action is open"},
			{nodeCleared, names(Clearing), string(Cleared), "no clear-node action is open and no terminating pod is left"},
			{nodeStopped, names(Clearing, Purging), string(Unknown), "the action ended and the node stays as it was: dry run, cancelled, abandoned"},
			{nodePurge, names(Healthy, Unknown, Clearing, Cleared, Gone), string(Purging), "a purge-node action is open"},
			{nodePurged, names(Purging), string(Purged), "the purge is done"},
			{nodeReturned, names(Unknown, Clearing, Cleared, Purging, Gone), string(Healthy), "the unreachable taint is gone, and no purge is past its point of no return"},
			{nodeGone, names(Healthy, Unknown, Clearing, Cleared, Purging), string(Gone), "the Node object is gone and EKCO did not purge it"},
		},
	}
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
		Name: "action", Initial: string(Requested), Finals: []string{string(Ended)},
		Transitions: []Transition{
			{actionPlan, names(Requested), string(Running), "its steps and captured facts are fixed"},
			{actionHold, names(Requested, Running), string(Held), "a preflight failed"},
			{actionRelease, names(Held), string(Running), "no preflight holds it any more"},
			{actionStall, names(Requested, Running, Held, Cancelling), string(Stalled), "its retry budget is spent"},
			{actionRetry, names(Held, Stalled), string(Running), "an administrator gave it a new budget"},
			{actionCancel, names(Requested, Running, Held, Stalled), string(Cancelling), "it shall stop before its point of no return"},
			{actionProceed, names(Cancelling), string(Running), "the point of no return came before the cancel took hold"},
			{actionEnd, names(Requested, Running, Held, Stalled, Cancelling), string(Ended), "it is over"},
		},
	}
}

func names[S ~string](states ...S) []string {
	out := make([]string, len(states))
	for i, state := range states {
		out[i] = string(state)
	}
	return out
}

// machine asks looplab/fsm where an event leads from a state. It has no
// callbacks, so asking has no effect.
type machine struct{ fsm *fsm.FSM }

func newMachine(table Table) machine {
	events := make(fsm.Events, len(table.Transitions))
	for i, t := range table.Transitions {
		events[i] = fsm.EventDesc{Name: t.Event, Src: t.From, Dst: t.To}
	}
	return machine{fsm.NewFSM(table.Initial, events, fsm.Callbacks{})}
}

// lead returns the state that event leads to, and whether it may happen in
// from.
func (m machine) lead(from, event string) (string, bool) {
	m.fsm.SetState(from)
	err := m.fsm.Event(context.Background(), event)
	if errors.As(err, new(fsm.NoTransitionError)) {
		return from, true
	}
	return m.fsm.Current(), err == nil
}

// leadNode is lead for the node machine.
func (s *State) leadNode(from journal.NodeState, event string) (journal.NodeState, bool) {
	to, ok := s.cached().node.lead(string(from), event)
	return journal.NodeState(to), ok
}

// stepAction moves the action's status if its machine lets the event happen,
// and leaves it alone otherwise: a hold, for example, is noted on a stalled
// action without ending the stall.
func (s *State) stepAction(rec *journal.ActionRecord, event string) {
	if to, ok := s.cached().action.lead(string(rec.Status), event); ok {
		rec.Status = journal.ActionStatus(to)
	}
}
