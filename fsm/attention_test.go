package fsm

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// guarded is a machine of lamps that need a person: the alarm's when it is dark, all others when they stay dark.
type guarded struct{ lamp }

func (guarded) Table() Table {
	table := lamp{}.Table()
	table.Attention = map[journal.State]Attention{"Dark": {After: time.Hour, Advice: "light it"}, "Broken": {Advice: "buy another"}}
	table.Transitions = slices.Clone(table.Transitions)
	table.Transitions[0].Report = func(t *Thing, _ journal.State, _ time.Time) Report {
		if lit(t) {
			return Report{}
		}
		return Report{Reason: "it does not burn", Cause: t.FactsSeq}
	}
	return table
}

func (guarded) NeedsPerson(t *Thing, _ time.Time) (reason, advice string) {
	if t.Name == "alarm" && !lit(t) {
		return "nobody hears", "run"
	}
	return "", ""
}

// needs expects that the thing needs a person, or with "" none, after a time.
func (h *house) needs(name string, after time.Duration, reason, advice string) {
	h.t.Helper()
	if gotReason, gotAdvice := h.s.Things[Key(subject(name))].NeedsPerson(h.now.Add(after)); gotReason != reason || gotAdvice != advice {
		h.t.Errorf("%s needs a person because %q: %q; want %q: %q", name, gotReason, gotAdvice, reason, advice)
	}
}

func newGuarded(t *testing.T) *house {
	all := lamps()
	all.Machine = guarded{}
	return newHouseOf(t, all)
}

func TestAThingThatStaysInAStateNeedsAPerson(t *testing.T) {
	h := newGuarded(t)
	h.observe("hall", `{"lit":false}`)
	h.needs("hall", 2*time.Hour, "", "") // it is not Dark yet
	h.decided("thing.transitioned hall: Burning to Dark")
	h.needs("hall", time.Hour-1, "", "")
	h.needs("hall", time.Hour, "it does not burn", "light it")
	h.observe("hall", `{"lit":true}`)
	h.needs("hall", 2*time.Hour, "", "") // its facts are newer than its state
}

func TestAThingMayNeedAPersonInAnyState(t *testing.T) {
	h := newGuarded(t)
	h.observe("alarm", `{"lit":false}`)
	h.needs("alarm", 0, "nobody hears", "run")
	h.decided("thing.transitioned alarm: Burning to Dark")
	h.needs("alarm", 2*time.Hour, "nobody hears", "run")
}

func TestWhatIsGoneOrNeverSeenNeedsNobody(t *testing.T) {
	h := newGuarded(t)
	for _, name := range []string{"alarm", "hall"} {
		h.observe(name, `{"lit":false}`)
	}
	h.decided("thing.transitioned alarm: Burning to Dark", "thing.transitioned hall: Burning to Dark")
	for _, name := range []string{"alarm", "hall"} {
		h.write(journal.Draft{Type: journal.TypeThingGone, Subject: subject(name), Payload: journal.ThingGone{Machine: "lamp", Reason: "stolen"}})
		h.needs(name, 2*time.Hour, "", "")
	}
	h.decided("thing.transitioned alarm: Dark to Broken", "thing.transitioned hall: Dark to Broken")
	h.needs("hall", 2*time.Hour, "", "")
	h.s.Add("lamp", subject("cellar"), "Dark", h.now)
	h.needs("cellar", 2*time.Hour, "", "")
}

// private is a machine of lamps whose facts come as events of its own types.
type private struct{ lamp }

func (private) Table() Table {
	table := lamp{}.Table()
	table.OwnFacts = true
	return table
}

func TestFactsOfAMachineWithEventsOfItsOwnAreRefused(t *testing.T) {
	of := lamps()
	of.Machine = private{}
	s := NewState(of)
	facts := journal.ThingObserved{Machine: "lamp", Facts: json.RawMessage(`{"lit":false}`)}
	body, version, err := journal.Draft{Type: journal.TypeThingObserved, Subject: subject("hall"), Payload: facts}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(journal.Event{Seq: 1, Type: journal.TypeThingObserved, Version: version, Subject: subject("hall"), Payload: body})
	if len(s.Things) != 0 || len(s.Problems) != 1 {
		t.Errorf("a thing.observed added %v, and is told as %q", s.Things, s.Problems)
	}
}

func TestAThingThatNeedsAPersonIsNotNormal(t *testing.T) {
	h := newGuarded(t)
	for name, lit := range map[string]string{"alarm": `{"lit":false}`, "hall": `{"lit":true}`} {
		h.observe(name, lit)
		thing := h.s.Things[Key(subject(name))]
		thing.machine.table.Normal = []string{string(thing.State)}
		if got := thing.IsNormal(h.now); got != (name == "hall") {
			t.Errorf("%s: normal is %t", name, got)
		}
		thing.machine.table.Normal = nil
		if thing.IsNormal(h.now) {
			t.Errorf("%s is normal in a state that is not", name)
		}
	}
}
