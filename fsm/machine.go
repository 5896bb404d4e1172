package fsm

import (
	"encoding/json"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Capability is what an EKCO can do about things of one sort: their machine, the
// kinds of action that are about them, and the rules of policy that only these obey.
type Capability struct {
	Machine Machine
	Kinds   []ActionKind
	Rules   []Rule
}

// Machine is what the engine asks about the things of one sort. It keeps nothing: all
// that it knows is in the things. Only Fold, Observed, Gone, Opened, Ended, Stepped, Loaded,
// Ages, Past and [Adopter] may change anything. A machine embeds [Base], which answers what
// it has nothing to say about.
type Machine interface {
	// Name is also the column in status and the label in metrics.
	Name() string
	// Table holds the states and the transitions.
	Table() Table
	// New returns what [Thing.Data] begins as, a pointer.
	New(t *Thing) any
	// Goal says where the facts say that the thing belongs when it is in the given
	// state. The way there is the table's.
	Goal(t *Thing, at journal.State, w *World) journal.State
	// Wants names the actions that the thing wants, now or later.
	Wants(t *Thing, w *World, want func(Want))
	// Request says what exactly is asked for, and which event led to it. It is called
	// for what is due and what no rule refuses.
	Request(t *Thing, kind *ActionKind, w *World) (request journal.ActionRequested, cause uint64)
	// Obsolete says why an open action about the thing has lost its reason, or "". What
	// is past its point of no return goes on all the same.
	Obsolete(t *Thing, rec *journal.ActionRecord) string
	// Outdated says the same of what the world says. It is asked where Obsolete has nothing
	// to say.
	Outdated(t *Thing, rec *journal.ActionRecord, w *World) string
	// Disputed says in the machine's own words what comes of the change each time that EKCO
	// makes it, and what a person can do about it. If both are empty, the engine's words are
	// that somebody else keeps changing it back.
	Disputed(t *Thing, change *journal.Change) (what, advice string)
	// Foresee names more than what the thing wants: what it will want as soon as something
	// happens that is to be expected, and what a setting keeps it from ever wanting. The
	// engine fills in Subject.
	Foresee(t *Thing, w *World, foresee func(Upcoming))

	// Fold folds an event of a type of the machine's own, and reports whether it is one.
	Fold(s *State, e journal.Event, payload journal.Payload) bool
	// Transitioned returns the event of a transition: thing.transitioned, or one of a type of
	// the machine's own, which its Fold folds by [State.Enter].
	Transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload)
	// Observed takes over facts of a thing.observed. The thing exists, so it is not gone. It is
	// not called if [Table.OwnFacts] is set.
	Observed(t *Thing, e journal.Event, facts json.RawMessage) error
	// Gone takes over that the thing no longer exists.
	Gone(t *Thing, e journal.Event, reason string)
	// Opened is told of an action that was requested or adopted.
	Opened(s *State, t *Thing, rec *journal.ActionRecord)
	// Stepped is told of an event of an open action, after it was folded into the record.
	Stepped(t *Thing, rec *journal.ActionRecord, e journal.Event, payload journal.Payload)
	// Ended is told of the end of an action, and reports whether [Thing.Last] keeps it.
	Ended(s *State, t *Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) (kept bool)
	// Loaded is told of a thing that was read from a snapshot. JSON can express data in ways
	// that Fold does not expect, such as a nil in a map of pointers.
	Loaded(t *Thing)
	// Ages visits the times by EKCO's clock from which is counted whether something
	// destructive may be done, Past the others.
	Ages(t *Thing, visit func(*time.Time))
	Past(t *Thing, visit func(*time.Time))
	// Needs says which events the thing comes from, besides its last facts and its last
	// actions.
	Needs(t *Thing, needs *Needs)

	// Counts reports whether the thing exists, and whether it is ready for what the machines
	// of others would do with it. They know no more of this machine than its name.
	Counts(t *Thing) (present, ready bool)
	// Details returns short lines about a thing that exists, as its facts say. The world may
	// be without a policy, as that of a journal which nobody works on.
	Details(t *Thing, w *World) []string
	// NeedsPerson says why a thing that exists needs a person at the time, whatever its state,
	// and what that person can do. Both are empty if it needs nobody.
	NeedsPerson(t *Thing, now time.Time) (reason, advice string)
	// Facts returns what is known of a thing that exists, as programs read it in JSON. There
	// must be no secrets in it.
	Facts(t *Thing) any
	// Measures tells the numbers of a thing that exists which are watched over time.
	Measures(t *Thing, w *World, tell func(Measure))
}

// Adopter is a [Machine] that knows what a thing is of which the journal knows
// nothing but an adopted action. A person may also request an action about such a thing.
type Adopter interface {
	// Adopt adds the thing, and reports false for a subject that is none of its things.
	Adopt(s *State, e journal.Event, subject journal.Subject) bool
}

// Pausable is a [Machine] whose things a person can pause by their names.
type Pausable interface {
	// Meant returns which of the things of a name a person means, or nil.
	Meant(s *State, name string) *Thing
	// Nobody is the subject of a name that nothing has any more. Its kind is that of
	// all the machine's things.
	Nobody(name string) journal.Subject
	// Unknown is the error for a name that nothing ever had.
	Unknown(s *State, name string) error
}

// Base is what a [Machine] embeds: it has nothing to say.
type Base struct{}

// Obsolete implements [Machine].
func (Base) Obsolete(*Thing, *journal.ActionRecord) string { return "" }

// Outdated implements [Machine].
func (Base) Outdated(*Thing, *journal.ActionRecord, *World) string { return "" }

// Disputed implements [Machine].
func (Base) Disputed(*Thing, *journal.Change) (what, advice string) { return "", "" }

// Foresee implements [Machine].
func (Base) Foresee(*Thing, *World, func(Upcoming)) {}

// Fold implements [Machine]: there are no event types of the machine's own.
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

// Ended implements [Machine]: every end is kept.
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

// Counts implements [Machine]: others count none of the things.
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
	// Due is when it shall be asked for; zero means at once.
	Due time.Time
	// Rank orders those of a kind of which one runs at a time: the earliest first.
	Rank time.Time
	// Change is what it would change, where somebody else may change it back; nil
	// where nobody does. It becomes part of the request.
	Change *journal.Change
}

// Measure is a number of a thing. Those of one name have the same help and label.
type Measure struct {
	// Name is in lower case with underscores, and begins with the machine's.
	Name, Help string
	// Label tells those of one name apart besides the thing; its value is Of.
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

// obsolete says why the action has lost its reason, or "".
func (m *machine) obsolete(t *Thing, rec *journal.ActionRecord, w *World) string {
	if reason := m.Obsolete(t, rec); reason != "" {
		return reason
	}
	return m.Outdated(t, rec, w)
}
