package fsm

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Thing is what a machine manages: a node, for example. The [Key] of its subject identifies it.
//
// The fields that each decision reads come first, so that they share a cache line.
type Thing struct {
	machine *machine
	// Data is what its machine keeps of it, in the type that [Machine.New] returns.
	Data any `json:"data,omitempty"`
	// Last is how the last action of each kind ended, as far as that matters.
	Last map[journal.ActionKind]*Ending `json:"last,omitempty"`
	// State is the last recorded state, Since when its durations count from.
	State journal.State `json:"state"`
	Since time.Time     `json:"since"`

	journal.Subject `json:"subject"`
	// FactsSeq is the event with its last facts, GoneSeq the one that reported its end; 0 means none.
	FactsSeq uint64 `json:"facts_seq,omitempty"`
	GoneSeq  uint64 `json:"gone_seq,omitempty"`
	// AddedSeq is the event that first observed it, EnteredSeq its last transition; 0 means none.
	AddedSeq   uint64 `json:"added_seq,omitempty"`
	EnteredSeq uint64 `json:"entered_seq,omitempty"`
	// Failed are its failed attempts, by kind of action.
	Failed map[journal.ActionKind]*FailedAttempts `json:"vain,omitempty"`
	// Contests are the changes that EKCO made to it, by their keys.
	Contests map[string]*Contest `json:"contests,omitempty"`
}

// Ending is how an action ended.
type Ending struct {
	Action  string          `json:"action"`
	Outcome journal.Outcome `json:"outcome"`
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at,omitzero"`
	// FactsSeq is the event that had brought the thing's last facts by then.
	FactsSeq uint64 `json:"facts_seq,omitempty"`
}

// Key identifies a subject: by its UID if it has one.
func Key(subject journal.Subject) string {
	if subject.UID != "" {
		return subject.UID
	}
	return subject.Kind + "/" + subject.Name
}

// Machine returns the name of the thing's machine.
func (t *Thing) Machine() string { return t.machine.Name() }

// Details returns the machine's lines about the thing, or nil if it is gone or was never seen.
func (t *Thing) Details(w *World) []string {
	if !t.Exists() {
		return nil
	}
	return t.machine.Details(t, w)
}

// Facts returns the machine's facts about it for programs, or nil if it is gone or was never seen.
func (t *Thing) Facts() any {
	if !t.Exists() {
		return nil
	}
	return t.machine.Facts(t)
}

// Measures passes its metrics to tell, if it exists.
func (t *Thing) Measures(w *World, tell func(Measure)) {
	if t.Exists() {
		t.machine.Measures(t, w, tell)
	}
}

// NeedsPerson returns why the thing needs a person now, and what the person can do. Both are empty if it does not.
func (t *Thing) NeedsPerson(now time.Time) (reason, advice string) {
	if t.Exists() {
		if reason, advice := t.machine.NeedsPerson(t, now); reason != "" {
			return reason, advice
		}
	}
	attention, ever := t.machine.table.Attention[t.State]
	if !ever || !t.Exists() || now.Sub(t.Since) < attention.After {
		return "", ""
	}
	for _, transition := range t.machine.table.Transitions {
		if transition.To == string(t.State) && transition.Tells != nil {
			reason = transition.Tells(t, t.State, now).Reason
		}
	}
	if reason == "" { // its facts are newer than its state
		return "", ""
	}
	return reason, attention.Advice
}

// Exists reports whether it exists according to the last observation.
func (t *Thing) Exists() bool { return t.FactsSeq != 0 && t.GoneSeq == 0 }

// Newest returns the last event about the thing's facts or its end.
func (t *Thing) Newest() uint64 { return max(t.FactsSeq, t.GoneSeq) }

// over reports whether the thing is finished.
func (t *Thing) over() bool { return slices.Contains(t.machine.table.Over, string(t.State)) }

func compareThings(a, b *Thing) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Kind, b.Kind))
}

// New returns a thing of the machine without adding it to the state.
func (s *State) New(machine string, subject journal.Subject, state journal.State, since time.Time) *Thing {
	t := &Thing{Subject: subject, State: state, Since: since, machine: s.cache.machine(machine)}
	t.Data = t.machine.New(t)
	return t
}

// Add adds a thing of the machine.
func (s *State) Add(machine string, subject journal.Subject, state journal.State, since time.Time) *Thing {
	t := s.New(machine, subject, state, since)
	key := Key(subject)
	t.takeOverContests(s)
	t.inherit(s.Inherited[key])
	delete(s.Inherited, key)
	s.Things[key] = t
	s.cache.index(key, t)
	s.Changed(machine)
	if t.over() {
		s.Finished = append(s.Finished, key)
	}
	return t
}

// Remove forgets a thing.
func (s *State) Remove(key string) {
	t := s.Things[key]
	if t == nil {
		return
	}
	delete(s.Things, key)
	s.Finished = slices.DeleteFunc(s.Finished, func(other string) bool { return other == key })
	s.cache.unindex(key, t)
	s.Changed(t.Machine())
}

// Named returns the keys of the machine's things with this name, in the order in which they were first seen. Callers
// must not change it.
func (s *State) Named(machine, name string) []string { return s.cache.named[thingName{machine, name}] }

// ByName yields the machine's things grouped by name, in no order.
func (s *State) ByName(machine string) iter.Seq2[string, []*Thing] {
	return func(yield func(string, []*Thing) bool) {
		for of, keys := range s.cache.named {
			if of.machine != machine {
				continue
			}
			var things []*Thing
			for _, key := range keys {
				things = append(things, s.Things[key])
			}
			if !yield(of.name, things) {
				return
			}
		}
	}
}

// HasOpen reports whether an action about the thing is open.
func (s *State) HasOpen(key string) bool {
	for _, rec := range s.Actions {
		if Key(rec.Subject) == key {
			return true
		}
	}
	return false
}

// maxFinished is how many finished things are kept.
const maxFinished = 1000

// ForgetFinished drops the oldest finished things above the limit, except those with an open action.
func (s *State) ForgetFinished() {
	s.forgetOldest(s.Finished, maxFinished)
}

// forgetFinishedOf does the same for the limit of one machine.
func (s *State) forgetFinishedOf(m *machine) {
	if m.table.Keep == 0 {
		return
	}
	var of []string
	for _, key := range s.Finished {
		if t := s.Things[key]; t != nil && t.machine == m {
			of = append(of, key)
		}
	}
	s.forgetOldest(of, m.table.Keep)
}

// forgetOldest drops the first of the things until no more than keep are left.
func (s *State) forgetOldest(keys []string, keep int) {
	extra := len(keys) - keep
	if extra <= 0 {
		return
	}
	for _, key := range slices.Clone(keys) {
		if extra > 0 && !s.HasOpen(key) {
			s.Remove(key)
			extra--
		}
	}
}

// Enter applies a transition's event to the thing, and reports whether the table allows it.
func (s *State) Enter(e journal.Event, t *Thing, p journal.ThingTransitioned) bool {
	s.Changed(t.Machine())
	to, ok := t.machine.next(string(p.From), p.Event)
	// The journal may no longer have the transitions before the first one on record.
	known := t.State == p.From || t.EnteredSeq == 0
	if !ok || to != string(p.To) || !known {
		s.Problem(e, "transition %q from %s to %s is not allowed; the %s is %s", p.Event, p.From, p.To, t.Machine(), t.State)
		return false
	}
	key, was := Key(t.Subject), t.over()
	t.State, t.Since, t.EnteredSeq = p.To, p.Since, e.Seq
	if t.Since.IsZero() {
		t.Since = e.Time
	}
	switch is := t.over(); {
	case is && !was:
		s.Finished = append(s.Finished, key)
		s.forgetFinishedOf(t.machine)
		s.ForgetFinished()
	case was && !is:
		s.Finished = slices.DeleteFunc(s.Finished, func(other string) bool { return other == key })
	}
	return true
}
