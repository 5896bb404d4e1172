package fsm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ObjectFacts are facts of an object of the outside world, in which EKCO sets a value.
type ObjectFacts[F any] interface {
	// Changes counts the changes of what is asked of the object, whoever made them.
	Changes() int64
	// Of returns the facts as those of the object with that UID.
	Of(uid string) F
}

// Object is what a machine keeps of an object. [Thing.Data] is one, or embeds it.
type Object[F ObjectFacts[F]] struct {
	// Facts are what was observed last.
	Facts F `json:"facts"`
	// Set is what EKCO made of it last.
	Set F `json:"set,omitzero"`
	// Lost is why it is gone, if it is.
	Lost string `json:"lost,omitempty"`
}

// Now returns what is asked of the object, as far as is known: as long as what was
// observed is older than what EKCO made of it, that holds.
func (o *Object[F]) Now() F {
	if o.Facts.Changes() < o.Set.Changes() {
		return o.Set
	}
	return o.Facts
}

// Made takes over what a step has made of the object, and reports whether it has.
func (o *Object[F]) Made(step journal.StepRecord) bool {
	var set F
	made := len(step.Outputs) > 0 && json.Unmarshal(step.Outputs, &set) == nil
	if made {
		o.Set = set
	}
	return made
}

// holder is an [Object] of any facts, or what embeds one.
type holder interface {
	observe(t *Thing, facts json.RawMessage) error
	lose(reason string)
	lost() string
}

func (o *Object[F]) observe(t *Thing, facts json.RawMessage) error {
	var now F
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of %s: %w", t.Name, err)
	}
	o.Facts, o.Lost = now.Of(t.UID), ""
	return nil
}

func (o *Object[F]) lose(reason string) { o.Lost = reason }
func (o *Object[F]) lost() string       { return o.Lost }
func (o *Object[F]) object() *Object[F] { return o }

// KnownObjects returns the facts of the machine's objects that exist, as far as the
// journal knows, by name.
func KnownObjects[F ObjectFacts[F]](s *State, machine string) map[string]F {
	known := map[string]F{}
	for _, t := range s.Things {
		if t.Machine() == machine && t.GoneSeq == 0 {
			known[t.Name] = t.Data.(interface{ object() *Object[F] }).object().Facts.Of(t.UID)
		}
	}
	return known
}

// Objects is what machines share whose things are a few objects of known names; such a
// machine embeds it. It implements [Pausable].
type Objects struct {
	Base

	Machine string
	// Subjects are the objects, without their UIDs.
	Subjects []journal.Subject
}

// Name implements [Machine].
func (o Objects) Name() string { return o.Machine }

// Observed implements [Machine].
func (Objects) Observed(t *Thing, _ journal.Event, facts json.RawMessage) error {
	return t.Data.(holder).observe(t, facts)
}

// Gone implements [Machine].
func (Objects) Gone(t *Thing, _ journal.Event, reason string) { t.Data.(holder).lose(reason) }

// Tells returns what is to be told of a transition.
func (Objects) Tells(reason string) func(*Thing, journal.State, time.Time) Telling {
	return func(t *Thing, _ journal.State, _ time.Time) Telling {
		return Telling{Reason: reason, Cause: t.Newest()}
	}
}

// TellsLost tells of the transition of an object that is gone: for the reason that the
// observer gave.
func (Objects) TellsLost(t *Thing, _ journal.State, _ time.Time) Telling {
	return Telling{Reason: t.Data.(holder).lost(), Cause: t.Newest()}
}

// Meant implements [Pausable]: names may leave out the namespace.
func (o Objects) Meant(s *State, name string) *Thing {
	var meant *Thing
	for _, t := range s.Things {
		if t.Machine() == o.Machine && called(t.Subject, name) && (meant == nil || t.FactsSeq > meant.FactsSeq) {
			meant = t
		}
	}
	return meant
}

func called(subject journal.Subject, name string) bool {
	return name != "" && (subject.Name == name || strings.HasSuffix(subject.Name, "/"+name))
}

// Nobody implements [Pausable].
func (o Objects) Nobody(name string) journal.Subject {
	for _, subject := range o.Subjects {
		if called(subject, name) {
			return subject
		}
	}
	return journal.Subject{Kind: o.Subjects[0].Kind, Name: name}
}

// Unknown implements [Pausable].
func (o Objects) Unknown(_ *State, name string) error {
	var names []string
	for _, subject := range o.Subjects {
		names = append(names, subject.Kind+" "+subject.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("%w: %q is not one of %s, or does not exist", ErrUnknown, name, strings.Join(names, ", "))
}
