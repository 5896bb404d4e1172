package fsm

import (
	"encoding/json"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Capability is what EKCO can do about things of one sort: their machine, the kinds of action about them, and the rules
// of policy that only these kinds obey.
type Capability struct {
	Machine Machine
	Kinds   []ActionKind
	Rules   []Rule
}

// Machine is what the engine asks about things of one sort. It has no state: everything is in the things. Only Fold,
// Observed, Gone, Opened, Ended, Stepped, Loaded, Ages, Past and [Adopter] may change anything. A machine embeds [Base]
// for the methods that it does not need.
type Machine interface {
	// Name is also the column in status and the label in metrics.
	Name() string
	// Table holds the states and the transitions.
	Table() Table
	// New returns the initial [Thing.Data], a pointer.
	New(t *Thing) any
	// Goal returns the state that the facts and the open actions call for, if the thing is in the given state. The
	// table has the way there.
	Goal(t *Thing, at journal.State, w *World) journal.State
	// Wants names the actions that the thing wants, now or later.
	Wants(t *Thing, w *World, want func(Want))
	// Request returns the details of the action, and the event that caused it. The engine calls it for a want that is
	// due and that no rule refuses.
	Request(t *Thing, kind *ActionKind, w *World) (request journal.ActionRequested, cause uint64)
	// Obsolete returns why an open action about the thing has lost its reason, or "". An action past its point of no
	// return continues regardless.
	Obsolete(t *Thing, rec *journal.ActionRecord) string
	// Outdated is Obsolete for reasons outside the thing. The engine calls it if Obsolete returns "".
	Outdated(t *Thing, rec *journal.ActionRecord, w *World) string
	// Disputed describes in the machine's own words what happens each time EKCO makes the change, and what a person can
	// do. If both are empty, the engine reports that another program keeps changing it back.
	Disputed(t *Thing, change *journal.Change) (what, advice string)
	// Foresee names more than Wants does: what the thing will want after an event that is likely, and what a setting
	// forbids. The engine sets Subject.
	Foresee(t *Thing, w *World, foresee func(Upcoming))

	// Fold folds an event of the machine's own types, and reports whether it is one.
	Fold(s *State, e journal.Event, payload journal.Payload) bool
	// Transitioned returns the event of a transition: thing.transitioned, or an event of the machine's own type, which
	// its Fold folds with [State.Enter].
	Transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload)
	// Observed stores the facts of a thing.observed. The thing exists, so it is not gone. It is not called if
	// [Table.OwnFacts] is set.
	Observed(t *Thing, e journal.Event, facts json.RawMessage) error
	// Gone stores that the thing no longer exists.
	Gone(t *Thing, e journal.Event, reason string)
	// Opened is called after an action was requested or adopted.
	Opened(s *State, t *Thing, rec *journal.ActionRecord)
	// Stepped is called after an event of an open action was folded into the record.
	Stepped(t *Thing, rec *journal.ActionRecord, e journal.Event, payload journal.Payload)
	// Ended is called after an action ended, and reports whether [Thing.Last] keeps it.
	Ended(s *State, t *Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) (kept bool)
	// Loaded is called after a thing was read from a snapshot. JSON can express data that Fold does not expect, such as
	// a nil in a map of pointers.
	Loaded(t *Thing)
	// Ages visits the times, by EKCO's clock, from which EKCO counts whether a destructive action is allowed. Past
	// visits the other times.
	Ages(t *Thing, visit func(*time.Time))
	Past(t *Thing, visit func(*time.Time))
	// Needs adds the events that the thing's data comes from, besides its last facts and its last actions.
	Needs(t *Thing, needs *Needs)

	// Counts reports whether the thing exists, and whether it is ready, for other machines, which know this machine
	// only by its name.
	Counts(t *Thing) (present, ready bool)
	// Details returns short lines about a thing that exists. The world may have no policy, if no operator uses the
	// journal.
	Details(t *Thing, w *World) []string
	// NeedsPerson returns why an existing thing needs a person now, in any state, and what the person can do. Both are
	// empty if it does not.
	NeedsPerson(t *Thing, now time.Time) (reason, advice string)
	// Facts returns the facts about an existing thing as JSON for programs. They must contain no secrets.
	Facts(t *Thing) any
	// Measures passes the metrics of an existing thing to tell.
	Measures(t *Thing, w *World, tell func(Measure))
}

// Adopter is a [Machine] that can add a thing of which the journal knows only an adopted action. A person may also
// request an action about such a thing.
type Adopter interface {
	// Adopt adds the thing. It reports false if the subject is not one of the machine's.
	Adopt(s *State, e journal.Event, subject journal.Subject) bool
}

// Pausable is a [Machine] whose things a person can pause by name.
type Pausable interface {
	// Meant returns which thing with this name a person means, or nil.
	Meant(s *State, name string) *Thing
	// Nobody returns the subject for a name that no thing has any more. All the machine's things have its kind.
	Nobody(name string) journal.Subject
	// Unknown returns the error for a name that no thing ever had.
	Unknown(s *State, name string) error
}

// Base is a [Machine] without any behaviour, to embed.
type Base struct{}

// Obsolete implements [Machine].
func (Base) Obsolete(*Thing, *journal.ActionRecord) string { return "" }

// Outdated implements [Machine].
func (Base) Outdated(*Thing, *journal.ActionRecord, *World) string { return "" }

// Disputed implements [Machine].
func (Base) Disputed(*Thing, *journal.Change) (what, advice string) { return "", "" }

// Foresee implements [Machine].
func (Base) Foresee(*Thing, *World, func(Upcoming)) {}

// Fold implements [Machine]: the machine has no event types of its own.
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

// Ended implements [Machine] and keeps every end.
func (Base) Ended(*State, *Thing, *journal.ActionRecord, *journal.ActionEnded) (kept bool) {
	return true
}

// Loaded implements [Machine].
func (Base) Loaded(*Thing) {}

// Ages implements [Machine].
func (Base) Ages(*Thing, func(*time.Time)) {}

// Past implements [Machine].
func (Base) Past(*Thing, func(*time.Time)) {}

// Needs implements [Machine].
func (Base) Needs(*Thing, *Needs) {}

// Counts implements [Machine]: no other machine counts these things.
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
	// Due is when to request it; zero means at once.
	Due time.Time
	// Rank orders the wants of a kind of which one action runs at a time, the earliest first.
	Rank time.Time
	// Change is the change that the action makes, if another program may undo it; else nil. It becomes part of the
	// request.
	Change *journal.Change
}

// Measure is a metric of a thing. All with one name have the same help and label.
type Measure struct {
	// Name is in lower case with underscores, and begins with the machine's name.
	Name, Help string
	// Label distinguishes metrics of one thing with the same name; its value is Of.
	Label, Of string
	Value     float64
}

type machine struct {
	Machine
	table Table
	checker
}

func newMachine(m Machine) *machine {
	table := m.Table()
	return &machine{m, table, newChecker(table)}
}

// obsolete returns why the action has lost its reason, or "".
func (m *machine) obsolete(t *Thing, rec *journal.ActionRecord, w *World) string {
	if reason := m.Obsolete(t, rec); reason != "" {
		return reason
	}
	return m.Outdated(t, rec, w)
}
