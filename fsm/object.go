package fsm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ObjectFacts are facts of an object outside of EKCO, in which EKCO sets a value.
type ObjectFacts[F any] interface {
	// Changes counts the changes of the object's specification by any client, like metadata.generation.
	Changes() int64
	// Of returns the facts for an object with this UID.
	Of(uid string) F
}

// Object is what a machine keeps of an object, as [Thing.Data] or embedded in it.
type Object[F ObjectFacts[F]] struct {
	// Facts were observed last.
	Facts F `json:"facts"`
	// Set is what EKCO's last change made of it.
	Set F `json:"set,omitzero"`
	// Lost is why it is gone, or "".
	Lost string `json:"lost,omitempty"`
}

// Now returns the present specification as far as EKCO knows it: its own change, until it observes newer facts.
func (o *Object[F]) Now() F {
	if o.Facts.Changes() < o.Set.Changes() {
		return o.Set
	}
	return o.Facts
}

// Made stores what a step has made of the object, and reports whether the step has.
func (o *Object[F]) Made(step journal.StepRecord) bool {
	var set F
	made := len(step.Outputs) > 0 && json.Unmarshal(step.Outputs, &set) == nil
	if made {
		o.Set = set
	}
	return made
}

// holder is an [Object] with any type of facts, or data that embeds one.
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

// KnownObjects returns, by name, the facts of the machine's objects that exist according to the journal.
func KnownObjects[F ObjectFacts[F]](s *State, machine string) map[string]F {
	known := map[string]F{}
	for _, t := range s.Things {
		if t.Machine() == machine && t.GoneSeq == 0 {
			known[t.Name] = t.Data.(interface{ object() *Object[F] }).object().Facts.Of(t.UID)
		}
	}
	return known
}

// Objects is for embedding in a machine whose things are a few objects with known names. It implements [Pausable].
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

// TellsLost is the [Telling] for an object that is gone, with the observer's reason.
func (Objects) TellsLost(t *Thing, _ journal.State, _ time.Time) Telling {
	return Telling{Reason: t.Data.(holder).lost(), Cause: t.Newest()}
}

// Meant implements [Pausable]. Names may leave out the namespace.
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
