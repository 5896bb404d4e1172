package fsm

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Thing is an object that a machine manages, for example a node. The [Key] of its subject identifies it.
//
// The fields that each decision reads come first, so that they are in the same cache line of the CPU.
type Thing struct {
	machine *machine
	// Data is the machine's data about the thing, in the type that [Machine.New] returns.
	Data any `json:"data,omitempty"`
	// Last says how the last action of each kind ended, if [Machine.Ended] kept it.
	Last map[journal.ActionKind]*Ending `json:"last,omitempty"`
	// State is the last recorded state. Since is when the state began.
	State journal.State `json:"state"`
	Since time.Time     `json:"since"`

	journal.Subject `json:"subject"`
	// FactsSeq is the event that has the last facts. GoneSeq is the event that reported that the thing no longer
	// exists. 0 means that there is no such event.
	FactsSeq uint64 `json:"facts_seq,omitempty"`
	GoneSeq  uint64 `json:"gone_seq,omitempty"`
	// AddedSeq is the event that first observed the thing. EnteredSeq is the event of the last transition. 0 means that
	// there is no such event.
	AddedSeq   uint64 `json:"added_seq,omitempty"`
	EnteredSeq uint64 `json:"entered_seq,omitempty"`
	// Failed are the failed attempts about the thing, by kind of action.
	Failed map[journal.ActionKind]*FailedAttempts `json:"vain,omitempty"`
	// Contests records the changes that EKCO made to the thing, by the key of the change.
	Contests map[string]*Contest `json:"contests,omitempty"`
}

// Ending says how and when an action ended.
type Ending struct {
	Action  string          `json:"action"`
	Outcome journal.Outcome `json:"outcome"`
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at,omitzero"`
	// FactsSeq is the event that had the thing's last facts when the action ended.
	FactsSeq uint64 `json:"facts_seq,omitempty"`
}

// Key returns the key of a subject: its UID, or its kind and name if it has no UID.
func Key(subject journal.Subject) string {
	if subject.UID != "" {
		return subject.UID
	}
	return subject.Kind + "/" + subject.Name
}

// Machine returns the name of the thing's machine.
func (t *Thing) Machine() string { return t.machine.Name() }

// Details returns the result of [Machine.Details], or nil if the thing does not exist or was never observed.
func (t *Thing) Details(w *World) []string {
	if !t.Exists() {
		return nil
	}
	return t.machine.Details(t, w)
}

// Facts returns the result of [Machine.Facts], or nil if the thing does not exist or was never observed.
func (t *Thing) Facts() any {
	if !t.Exists() {
		return nil
	}
	return t.machine.Facts(t)
}

// Measures calls [Machine.Measures] if the thing exists.
func (t *Thing) Measures(w *World, tell func(Measure)) {
	if t.Exists() {
		t.machine.Measures(t, w, tell)
	}
}

// NeedsPerson returns why the thing needs a person now, and what the person can do: from [Machine.NeedsPerson], or from
// [Table.Attention]. Both are empty if the thing does not need a person.
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
		if transition.To == string(t.State) && transition.Report != nil {
			reason = transition.Report(t, t.State, now).Reason
		}
	}
	if reason == "" { // its facts are newer than its state
		return "", ""
	}
	return reason, attention.Advice
}

// Exists reports whether the thing was observed and still exists.
func (t *Thing) Exists() bool { return t.FactsSeq != 0 && t.GoneSeq == 0 }

// Newest returns the last event with facts about the thing, or that reported that it no longer exists.
func (t *Thing) Newest() uint64 { return max(t.FactsSeq, t.GoneSeq) }

func (t *Thing) isFinished() bool { return slices.Contains(t.machine.table.Over, string(t.State)) }

// IsNormal reports whether the thing needs no attention, and nothing about it is under way.
func (t *Thing) IsNormal(now time.Time) bool {
	reason, _ := t.NeedsPerson(now)
	return reason == "" && (t.isFinished() || slices.Contains(t.machine.table.Normal, string(t.State)))
}

func compareThings(a, b *Thing) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Kind, b.Kind))
}

// New returns a new thing of the machine. It does not add the thing to the state.
func (s *State) New(machine string, subject journal.Subject, state journal.State, since time.Time) *Thing {
	t := &Thing{Subject: subject, State: state, Since: since, machine: s.cache.machine(machine)}
	t.Data = t.machine.New(t)
	return t
}

// Add adds a new thing of the machine to the state.
func (s *State) Add(machine string, subject journal.Subject, state journal.State, since time.Time) *Thing {
	t := s.New(machine, subject, state, since)
	key := Key(subject)
	t.takeOverContests(s)
	t.inheritContests(s.Inherited[key])
	delete(s.Inherited, key)
	s.Things[key] = t
	s.cache.index(key, t)
	s.Changed(machine)
	if t.isFinished() {
		s.Finished = append(s.Finished, key)
	}
	return t
}

// Remove removes a thing from the state.
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

// Named returns the keys of the machine's things with this name, in the order in which they were added. Callers must
// not change the slice.
func (s *State) Named(machine, name string) []string { return s.cache.named[thingName{machine, name}] }

// ByName yields the machine's things grouped by name, in no order.
func (s *State) ByName(machine string) iter.Seq2[string, []*Thing] {
	return func(yield func(string, []*Thing) bool) {
		for entry, keys := range s.cache.named {
			if entry.machine != machine {
				continue
			}
			var things []*Thing
			for _, key := range keys {
				things = append(things, s.Things[key])
			}
			if !yield(entry.name, things) {
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

// maxFinished is how many finished things the state keeps at most.
const maxFinished = 1000

// ForgetFinished removes the oldest finished things until no more than maxFinished are left. It keeps things with an
// open action.
func (s *State) ForgetFinished() {
	s.forgetOldest(s.Finished, maxFinished)
}

// forgetFinishedFor removes the oldest finished things of one machine until no more than [Table.Keep] are left.
func (s *State) forgetFinishedFor(m *machine) {
	if m.table.Keep == 0 {
		return
	}
	var keys []string
	for _, key := range s.Finished {
		if t := s.Things[key]; t != nil && t.machine == m {
			keys = append(keys, key)
		}
	}
	s.forgetOldest(keys, m.table.Keep)
}

// forgetOldest removes the first of these things until no more than keep are left. It keeps things with an open action.
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

// Enter changes the thing's state by the event of a transition, and reports whether the table allows the transition.
func (s *State) Enter(e journal.Event, t *Thing, p journal.ThingTransitioned) bool {
	s.Changed(t.Machine())
	to, ok := t.machine.next(string(p.From), p.Event)
	// Retention may have moved out earlier transitions, so the first known one may begin in any state.
	known := t.State == p.From || t.EnteredSeq == 0
	if !ok || to != string(p.To) || !known {
		s.Problem(e, "transition %q from %s to %s is not allowed; the %s is %s", p.Event, p.From, p.To, t.Machine(), t.State)
		return false
	}
	key, was := Key(t.Subject), t.isFinished()
	t.State, t.Since, t.EnteredSeq = p.To, p.Since, e.Seq
	if t.Since.IsZero() {
		t.Since = e.Time
	}
	switch is := t.isFinished(); {
	case is && !was:
		s.Finished = append(s.Finished, key)
		s.forgetFinishedFor(t.machine)
		s.ForgetFinished()
	case was && !is:
		s.Finished = slices.DeleteFunc(s.Finished, func(other string) bool { return other == key })
	}
	return true
}
