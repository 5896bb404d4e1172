package fsm

import (
	"encoding/json"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Capability has everything that the engine needs about things of one sort: their machine, the kinds of action about
// them, and the rules of policy that only these kinds obey.
type Capability struct {
	Machine Machine
	Kinds   []ActionKind
	Rules   []Rule
}

// Machine defines the behaviour of things of one sort. It has no state of its own: all data is in the things. Only
// Fold, Observed, Gone, Opened, Ended, Stepped, Loaded, VisitAges, VisitOtherTimes and [Adopter] may change anything.
// Embed [Base] for the methods that a machine does not need.
type Machine interface {
	// Name returns the name of the machine. It is also shown in the status and is a label of metrics.
	Name() string
	// Table returns the states and the transitions.
	Table() Table
	// New returns the initial value of [Thing.Data]. It must be a pointer.
	New(t *Thing) any
	// Goal returns the state in which the thing should be, according to its facts and open actions. at is its present
	// state. The table must have a way from at to the goal.
	Goal(t *Thing, at journal.State, w *World) journal.State
	// Wants calls want with each action that the thing wants, now or later.
	Wants(t *Thing, w *World, want func(Want))
	// Request returns the request for an action and the event that caused it. The engine calls it for a want that is
	// due and that no rule refuses, and for a person's request.
	Request(t *Thing, kind *ActionKind, w *World) (request journal.ActionRequested, cause uint64)
	// Obsolete returns why an open action about the thing is no longer needed, or "". The engine then cancels the
	// action, unless the action is past its point of no return.
	Obsolete(t *Thing, rec *journal.ActionRecord) string
	// Outdated is like Obsolete, for reasons outside the thing itself. The engine calls it if Obsolete returns "".
	Outdated(t *Thing, rec *journal.ActionRecord, w *World) string
	// Disputed returns the message for a change that does not last (see [Contest]): what happens each time EKCO makes
	// the change, and what a person can do. If both are empty, the engine reports that another program keeps undoing
	// it.
	Disputed(t *Thing, change *journal.Change) (what, advice string)
	// Foresee calls foresee with actions that Wants does not have: actions after an event that is likely, and actions
	// that a setting forbids. The engine sets Subject.
	Foresee(t *Thing, w *World, foresee func(Upcoming))

	// Fold folds an event of a type that only this machine has, and reports whether the event is one.
	Fold(s *State, e journal.Event, payload journal.Payload) bool
	// Transitioned returns the event for a transition: thing.transitioned, or a type that only this machine has. For a
	// type of its own, Fold must call [State.Enter].
	Transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload)
	// Observed stores the facts of a thing.observed. The thing exists then, even if it was gone before. The engine does
	// not call Observed if [Table.OwnFacts] is set.
	Observed(t *Thing, e journal.Event, facts json.RawMessage) error
	// Gone stores that the thing no longer exists.
	Gone(t *Thing, e journal.Event, reason string)
	// Opened is called after an action was requested or adopted.
	Opened(s *State, t *Thing, rec *journal.ActionRecord)
	// Stepped is called after an event of an open action was folded into the record.
	Stepped(t *Thing, rec *journal.ActionRecord, e journal.Event, payload journal.Payload)
	// Ended is called after an action ended. It reports whether the engine must store the end in [Thing.Last].
	Ended(s *State, t *Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) (kept bool)
	// Loaded is called after a thing was read from a snapshot. JSON can express data that Fold does not expect, such as
	// a nil in a map of pointers.
	Loaded(t *Thing)
	// VisitAges calls visit with each time in the thing's data whose age decides whether a destructive action is allowed.
	// VisitOtherTimes calls visit with the other times. All these times are by EKCO's clock, and visit may change them.
	VisitAges(t *Thing, visit func(*time.Time))
	VisitOtherTimes(t *Thing, visit func(*time.Time))
	// Needs adds the events from which a replay gets the thing's data, except its last facts and its last actions.
	Needs(t *Thing, needs *Needs)

	// Counts reports whether the thing exists, and whether it is ready. Other machines use it through [State.Count],
	// because they know this machine only by its name.
	Counts(t *Thing) (present, ready bool)
	// Details returns short lines for people about a thing that exists. The world may have no policy, because the
	// journal can be read without an operator.
	Details(t *Thing, w *World) []string
	// NeedsPerson returns why a thing that exists needs a person now, and what the person can do. Both are empty if the
	// thing does not need a person.
	NeedsPerson(t *Thing, now time.Time) (reason, advice string)
	// Facts returns the facts about a thing that exists, for the JSON output. They must contain no secrets.
	Facts(t *Thing) any
	// Measures calls tell with each metric of a thing that exists.
	Measures(t *Thing, w *World, tell func(Measure))
}

// Adopter is a [Machine] that can add a thing which EKCO never saw, because an action about the thing was adopted from
// a mirror. A person may also request an action about such a thing.
type Adopter interface {
	// Adopt adds the thing. It returns false if the subject does not belong to this machine.
	Adopt(s *State, e journal.Event, subject journal.Subject) bool
}

// Pausable is a [Machine] whose things a person can pause by name.
type Pausable interface {
	// Meant returns the thing that a person means by this name, or nil.
	Meant(s *State, name string) *Thing
	// Nobody returns the subject for a name that no thing has now. All things of the machine have the same kind as this
	// subject.
	Nobody(name string) journal.Subject
	// Unknown returns the error for a name that no thing ever had.
	Unknown(s *State, name string) error
}

// Base implements the methods of [Machine] that a machine may not need. They do nothing. Embed it in a machine.
type Base struct{}

// Obsolete implements [Machine].
func (Base) Obsolete(*Thing, *journal.ActionRecord) string { return "" }

// Outdated implements [Machine].
func (Base) Outdated(*Thing, *journal.ActionRecord, *World) string { return "" }

// Disputed implements [Machine].
func (Base) Disputed(*Thing, *journal.Change) (what, advice string) { return "", "" }

// Foresee implements [Machine].
func (Base) Foresee(*Thing, *World, func(Upcoming)) {}

// Fold implements [Machine], for a machine without event types of its own.
func (Base) Fold(*State, journal.Event, journal.Payload) bool { return false }

// Transitioned implements [Machine].
func (Base) Transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload) {
	return journal.TypeThingTransitioned, p
}

// Observed implements [Machine].
func (Base) Observed(*Thing, journal.Event, json.RawMessage) error { return nil }

// Gone implements [Machine].
func (Base) Gone(*Thing, journal.Event, string) {}

// Opened implements [Machine].
func (Base) Opened(*State, *Thing, *journal.ActionRecord) {}

// Stepped implements [Machine].
func (Base) Stepped(*Thing, *journal.ActionRecord, journal.Event, journal.Payload) {}

// Ended implements [Machine]. The engine stores the end of every action.
func (Base) Ended(*State, *Thing, *journal.ActionRecord, *journal.ActionEnded) (kept bool) {
	return true
}

// Loaded implements [Machine].
func (Base) Loaded(*Thing) {}

// VisitAges implements [Machine].
func (Base) VisitAges(*Thing, func(*time.Time)) {}

// VisitOtherTimes implements [Machine].
func (Base) VisitOtherTimes(*Thing, func(*time.Time)) {}

// Needs implements [Machine].
func (Base) Needs(*Thing, *Needs) {}

// Counts implements [Machine], for a machine whose things no other machine counts.
func (Base) Counts(*Thing) (present, ready bool) { return false, false }

// Details implements [Machine].
func (Base) Details(*Thing, *World) []string { return nil }

// NeedsPerson implements [Machine].
func (Base) NeedsPerson(*Thing, time.Time) (reason, advice string) { return "", "" }

// Facts implements [Machine].
func (Base) Facts(*Thing) any { return nil }

// Measures implements [Machine].
func (Base) Measures(*Thing, *World, func(Measure)) {}

// Want is an action that a thing wants.
type Want struct {
	Kind journal.ActionKind
	// Due is when EKCO may request the action; zero means at once.
	Due time.Time
	// Rank decides which thing goes first if only one action of the kind runs at a time: the one with the earliest
	// Rank.
	Rank time.Time
	// Change is the change that the action makes, if another program may undo it, or nil. The request includes it.
	Change *journal.Change
}

// Measure is a metric of a thing. All measures with the same name must have the same help and label.
type Measure struct {
	// Name must be in lower case with underscores, and begin with the machine's name.
	Name, Help string
	// Label is the name of a label that distinguishes metrics of one thing with the same name. Of is its value.
	Label, Of string
	Value     float64
}

// machine is a Machine with its table and the checker for its transitions.
type machine struct {
	Machine
	table Table
	checker
}

func newMachine(m Machine) *machine {
	table := m.Table()
	return &machine{m, table, newChecker(table)}
}

// obsolete returns why the action is no longer needed, or "".
func (m *machine) obsolete(t *Thing, rec *journal.ActionRecord, w *World) string {
	if reason := m.Obsolete(t, rec); reason != "" {
		return reason
	}
	return m.Outdated(t, rec, w)
}
