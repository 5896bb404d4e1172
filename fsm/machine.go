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
// that it knows is in the things. Only Fold and the methods of [Observing],
// [ActionFolder], [Adopter] and [Loader] may change anything.
type Machine interface {
	// Name is also the column in status and the label in metrics.
	Name() string
	// Table holds the states and the transitions.
	Table() Table
	// New returns what [Thing.Data] begins as, a pointer.
	New(t *Thing) any
	// Fold folds an event of a type of the machine's own, and reports whether it is one.
	Fold(s *State, e journal.Event, payload journal.Payload) bool
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
}

// Reconsidering is a [Machine] that finds in other things whether an action has lost its
// reason.
type Reconsidering interface {
	// Outdated says what [Machine.Obsolete] does, of what the world says. It is asked
	// where that has nothing to say.
	Outdated(t *Thing, rec *journal.ActionRecord, w *World) string
}

// Observing is a [Machine] whose facts come as thing.observed and thing.gone, which the
// engine folds.
type Observing interface {
	// Observed takes over facts. The thing exists, so it is not gone.
	Observed(t *Thing, e journal.Event, facts json.RawMessage) error
	// Gone takes over that the thing no longer exists.
	Gone(t *Thing, e journal.Event, reason string)
}

// Transitioner is a [Machine] with an event type of its own for its transitions, which
// its Fold folds by [State.Enter]. Those of others are thing.transitioned.
type Transitioner interface {
	Transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload)
}

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

// Disputing is a [Machine] that says in its own words what undoes its changes: "somebody
// else keeps changing" is not what a person can make sense of where nobody does.
type Disputing interface {
	// Disputed says what comes of the change each time that EKCO makes it, and what a
	// person can do about it.
	Disputed(t *Thing, change *journal.Change) (what, advice string)
}

// ActionFolder is a [Machine] that keeps with its things what becomes of actions.
type ActionFolder interface {
	// Opened is told of an action that was requested or adopted.
	Opened(s *State, t *Thing, rec *journal.ActionRecord)
	// Ended is told of the end, and reports whether it is to be kept in [Thing.Last].
	Ended(s *State, t *Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) (kept bool)
}

// StepFolder is a [Machine] that keeps with its things what becomes of the steps of actions.
type StepFolder interface {
	// Stepped is told of an event of an open action, after it was folded into the record.
	Stepped(t *Thing, rec *journal.ActionRecord, e journal.Event, payload journal.Payload)
}

// Adopter is a [Machine] that knows what a thing is of which the journal knows
// nothing but an adopted action.
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

// Loader is a [Machine] whose data JSON can express in ways that Fold does not expect,
// such as a nil in a map of pointers.
type Loader interface {
	// Loaded is told of a thing that was read from a snapshot.
	Loaded(t *Thing)
}

// Counted is a [Machine] whose things the machines of others count, which know no more
// of it than its name.
type Counted interface {
	// Counts reports whether the thing exists, and whether it is ready for what others
	// would do with it.
	Counts(t *Thing) (present, ready bool)
}

// Aging is a [Machine] whose things hold times by EKCO's clock.
type Aging interface {
	// Ages visits the times from which is counted whether something destructive may be
	// done, Past the others.
	Ages(t *Thing, visit func(*time.Time))
	Past(t *Thing, visit func(*time.Time))
}

// Detailed is a [Machine] that has more to say of a thing than its state, to a person who
// looks closer.
type Detailed interface {
	// Details returns short lines about a thing that exists, as its facts say. The world may
	// be without a policy, as that of a journal which nobody works on.
	Details(t *Thing, w *World) []string
}

// Attentive is a [Machine] whose things can need a person in any state, depending on their facts.
type Attentive interface {
	// NeedsPerson says why a thing that exists needs a person at the time, and what that person can do.
	// Both are empty if it needs nobody.
	NeedsPerson(t *Thing, now time.Time) (reason, advice string)
}

// Documented is a [Machine] whose facts programs may read.
type Documented interface {
	// Facts returns what is known of a thing that exists, as JSON will have it. There must be
	// no secrets in it.
	Facts(t *Thing) any
}

// Measured is a [Machine] with numbers that are watched over time.
type Measured interface {
	// Measures tells the numbers of a thing that exists.
	Measures(t *Thing, w *World, tell func(Measure))
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

// transitioned is the event of a transition.
func (m *machine) transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload) {
	if own, ok := m.Machine.(Transitioner); ok {
		return own.Transitioned(p)
	}
	return journal.TypeThingTransitioned, p
}

// obsolete says why the action has lost its reason, or "".
func (m *machine) obsolete(t *Thing, rec *journal.ActionRecord, w *World) string {
	reason := m.Obsolete(t, rec)
	if reconsidering, ok := m.Machine.(Reconsidering); ok && reason == "" {
		return reconsidering.Outdated(t, rec, w)
	}
	return reason
}
