package fsm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ObjectFacts are facts about an object in the cluster in which EKCO sets a value.
type ObjectFacts[F any] interface {
	// Changes returns how often any client changed the object's spec, like metadata.generation.
	Changes() int64
	// WithUID returns the facts with the UID of the object.
	WithUID(uid string) F
}

// Object is the data of a machine about one object. A machine uses it as [Thing.Data], or embeds it there.
type Object[F ObjectFacts[F]] struct {
	// Facts are the last observed facts.
	Facts F `json:"facts"`
	// Set has the facts about the object right after EKCO's last change.
	Set F `json:"set,omitzero"`
	// Lost says why the object no longer exists, or is "".
	Lost string `json:"lost,omitempty"`
}

// Now returns the newest known facts: the facts after EKCO's own change, until EKCO observes facts that are as new.
func (o *Object[F]) Now() F {
	if o.Facts.Changes() < o.Set.Changes() {
		return o.Set
	}
	return o.Facts
}

// Made stores the facts in the outputs of a step that changes the object, and reports whether the step changed the
// object.
func (o *Object[F]) Made(step journal.StepRecord) bool {
	var set F
	made := len(step.Outputs) > 0 && json.Unmarshal(step.Outputs, &set) == nil
	if made {
		o.Set = set
	}
	return made
}

// anyObject is implemented by [Object] with any type of facts, and by data that embeds an Object.
type anyObject interface {
	observe(t *Thing, facts json.RawMessage) error
	lose(reason string)
	lost() string
}

func (o *Object[F]) observe(t *Thing, facts json.RawMessage) error {
	var now F
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of %s: %w", t.Name, err)
	}
	o.Facts, o.Lost = now.WithUID(t.UID), ""
	return nil
}

func (o *Object[F]) lose(reason string) { o.Lost = reason }
func (o *Object[F]) lost() string       { return o.Lost }
func (o *Object[F]) object() *Object[F] { return o }

// KnownObjects returns the facts about the machine's objects that exist according to the journal, by name.
func KnownObjects[F ObjectFacts[F]](s *State, machine string) map[string]F {
	known := map[string]F{}
	for _, t := range s.Things {
		if t.Machine() == machine && t.GoneSeq == 0 {
			known[t.Name] = t.Data.(interface{ object() *Object[F] }).object().Facts.WithUID(t.UID)
		}
	}
	return known
}

// Objects implements methods of [Machine], and [Pausable], for a machine whose things are a few objects with known
// names. Embed it in such a machine.
type Objects struct {
	Base

	Machine string
	// Subjects are the subjects of the objects, without UIDs.
	Subjects []journal.Subject
}

// Name implements [Machine].
func (o Objects) Name() string { return o.Machine }

// Observed implements [Machine].
func (Objects) Observed(t *Thing, _ journal.Event, facts json.RawMessage) error {
	return t.Data.(anyObject).observe(t, facts)
}

// Gone implements [Machine].
func (Objects) Gone(t *Thing, _ journal.Event, reason string) { t.Data.(anyObject).lose(reason) }

// ReportLost is a function for [Transition.Report] that returns the observer's reason why the object no longer exists.
func (Objects) ReportLost(t *Thing, _ journal.State, _ time.Time) Report {
	return Report{Reason: t.Data.(anyObject).lost(), Cause: t.Newest()}
}

// Meant implements [Pausable]. A person may leave out the namespace.
func (o Objects) Meant(s *State, name string) *Thing {
	var meant *Thing
	for _, t := range s.Things {
		if t.Machine() == o.Machine && hasName(t.Subject, name) && (meant == nil || t.FactsSeq > meant.FactsSeq) {
			meant = t
		}
	}
	return meant
}

func hasName(subject journal.Subject, name string) bool {
	return name != "" && (subject.Name == name || strings.HasSuffix(subject.Name, "/"+name))
}

// Nobody implements [Pausable].
func (o Objects) Nobody(name string) journal.Subject {
	for _, subject := range o.Subjects {
		if hasName(subject, name) {
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
