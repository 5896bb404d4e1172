package fsm

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Upcoming is an action that EKCO will begin if nothing changes, or that a rule or a setting prevents now.
type Upcoming struct {
	Kind    journal.ActionKind `json:"kind"`
	Subject journal.Subject    `json:"subject"`
	// Things is the number of things that wait because of a rule about the whole cluster. Subject is then the cluster.
	// In all other entries Things is 0.
	Things int `json:"things"`
	// At is when the action begins, or the earliest time at which it may begin; zero if unknown.
	At time.Time `json:"at,omitzero"`
	// Never is set if EKCO will not begin the action automatically with its present settings.
	Never bool `json:"never"`
	// Rule is the rule of policy that refuses the action now and, as far as EKCO knows, will still refuse it when it is
	// due; "" if there is no such rule.
	Rule string `json:"rule"`
	// Why says what the action waits for, or why it never begins.
	Why string `json:"why"`
}

// MarshalJSON implements [json.Marshaler]: an unknown time is null.
func (u Upcoming) MarshalJSON() ([]byte, error) {
	type plain Upcoming
	with := struct {
		plain
		At *time.Time `json:"at"`
	}{plain: plain(u)}
	if !u.At.IsZero() {
		with.At = &u.At
	}
	return json.Marshal(with)
}

// Foresee returns the actions that EKCO will begin according to the present state, sorted by time. Entries without a
// known time come last. It leaves out actions that Decide requests now. It changes nothing.
func Foresee(s *State, p Policy, now time.Time) []Upcoming {
	if p.Passive {
		return nil
	}
	f := newForecast(s, p, now)
	for _, t := range s.Things {
		f.addThing(t)
	}
	slices.SortFunc(f.upcoming, compareUpcoming)
	return f.upcoming
}

// ForeseeThing is [Foresee] for one thing. It has an entry for the thing itself, even if the thing waits because of a
// rule about the whole cluster, for which Foresee has only one entry for all things.
func ForeseeThing(s *State, p Policy, now time.Time, subject journal.Subject) []Upcoming {
	t := s.Things[Key(subject)]
	if t == nil || p.Passive {
		return nil
	}
	f := newForecast(s, p, now)
	f.isSingleThing = true
	f.addThing(t)
	slices.SortFunc(f.upcoming, compareUpcoming)
	return f.upcoming
}

func newForecast(s *State, p Policy, now time.Time) *forecast {
	f := &forecast{round: &round{World: NewWorld(s, p, now)}, clusterEntries: map[clusterKey]int{}}
	f.newRefusals = map[refusalKey]roundRefusal{}
	return f
}

func (f *forecast) addThing(t *Thing) {
	t.machine.Wants(t, f.World, func(want Want) { f.addWant(t, want) })
	t.machine.Foresee(t, f.World, func(u Upcoming) {
		u.Subject = t.Subject
		if kind := f.kind(u.Kind); kind != nil && !u.Never {
			f.change = nil
			f.addIfWaiting(t, kind, u)
			return
		}
		f.upcoming = append(f.upcoming, u)
	})
}

type clusterKey struct {
	kind journal.ActionKind
	rule string
}

// forecast has the data of one call of Foresee or ForeseeThing.
type forecast struct {
	*round
	upcoming []Upcoming
	// clusterEntries has the index in upcoming of the entry for each rule about the whole cluster and kind of action.
	clusterEntries map[clusterKey]int
	// isSingleThing is set if the forecast is for one thing, so that entries are not combined.
	isSingleThing bool
}

func (f *forecast) addWant(t *Thing, want Want) {
	kind := f.kind(want.Kind)
	if kind == nil {
		return // Decide refuses the kind, and reports it as a defect
	}
	f.change = want.Change
	f.addIfWaiting(t, kind, Upcoming{Kind: want.Kind, Subject: t.Subject, At: want.Due})
}

// addIfWaiting adds an entry for an action that is due at u.At, with the rule that refuses it. It adds none if the
// action is due now and no rule refuses it.
func (f *forecast) addIfWaiting(t *Thing, kind *ActionKind, u Upcoming) {
	rule := f.blockingRule(t, kind, u.At)
	switch {
	case rule == nil && !f.Now.Before(u.At):
		return
	case rule == nil:
	case rule.Cluster && !f.isSingleThing:
		f.addToClusterEntry(rule, t, kind)
		return
	default:
		u.Rule, u.Why, u.At = rule.Name, rule.reason(f.World, t, kind), f.until(rule, t, kind)
	}
	f.upcoming = append(f.upcoming, u)
}

// addToClusterEntry adds the thing to the entry of the rule. There is one entry for all things, because thousands of
// things may wait for the same reason.
func (f *forecast) addToClusterEntry(rule *Rule, t *Thing, kind *ActionKind) {
	key := clusterKey{kind.Name, rule.Name}
	if known, ok := f.clusterEntries[key]; ok {
		f.upcoming[known].Things++
		return
	}
	f.clusterEntries[key] = len(f.upcoming)
	f.upcoming = append(f.upcoming, Upcoming{
		Kind: kind.Name, Subject: journal.ClusterSubject, Things: 1, At: f.until(rule, t, kind), Rule: rule.Name, Why: rule.reason(f.World, t, kind),
	})
}

// blockingRule returns the first rule that refuses the action now and will still refuse it when it is due, or nil.
func (f *forecast) blockingRule(t *Thing, kind *ActionKind, due time.Time) *Rule {
	rules := f.rulesOf(kind)
	for i := range rules {
		rule := &rules[i]
		if !rule.refusesThing(f.World, t, kind) {
			continue
		}
		if until := f.until(rule.Rule, t, kind); until.IsZero() || until.After(due) {
			return rule.Rule
		}
	}
	return nil
}

// until returns when the rule stops refusing if there is no new event, or zero if unknown.
func (f *forecast) until(rule *Rule, t *Thing, kind *ActionKind) time.Time {
	if rule.Until == nil {
		return time.Time{}
	}
	return rule.Until(f.World, t, kind)
}

func compareUpcoming(a, b Upcoming) int {
	return cmp.Or(
		compareTimes(a.At, b.At), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Subject.Kind, b.Subject.Kind), cmp.Compare(a.Subject.Name, b.Subject.Name), cmp.Compare(a.Subject.UID, b.Subject.UID),
	)
}

// compareTimes puts unknown times last.
func compareTimes(a, b time.Time) int {
	switch {
	case a.Equal(b):
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}
