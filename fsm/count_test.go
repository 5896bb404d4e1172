package fsm

import (
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// countedLamp is a machine whose things others count.
type countedLamp struct{ lamp }

func (countedLamp) Counts(t *Thing) (present, ready bool) { return t.GoneSeq == 0, lit(t) }

func TestOnlyThingsOfTheMachineThatAreThereAreCounted(t *testing.T) {
	h := newHouse(t)
	of := lamps()
	of.Machine = countedLamp{}
	h.s = NewState(of, Capability{Machine: torch{}})
	want := func(machine string, present, ready int) {
		t.Helper()
		if p, r := h.s.Count(machine); p != present || r != ready {
			t.Errorf("of %s there are %d, %d ready, want %d and %d", machine, p, r, present, ready)
		}
	}
	h.observe("hall", `{"lit":true}`)
	h.observe("desk", `{"lit":false}`)
	h.write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: torchSubject("hall"), Payload: journal.ThingObserved{Machine: "torch", Facts: []byte(`{"lit":true}`)},
	})
	want("lamp", 2, 1)
	want("torch", 0, 0)
	want("stove", 0, 0)
	h.members("lamp", "desk", "hall is ready")
	h.members("torch")
	h.members("stove")
	h.write(journal.Draft{Type: journal.TypeThingGone, Subject: subject("hall"), Payload: journal.ThingGone{Machine: "lamp"}})
	want("lamp", 1, 0)
	h.members("lamp", "desk")
}

// members expects these, in order of their names.
func (h *house) members(machine string, want ...string) {
	h.t.Helper()
	var got []string
	for t, ready := range h.s.Members(machine) {
		text := t.Name
		if ready {
			text += " is ready"
		}
		got = append(got, text)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		h.t.Errorf("of %s there are %q, want %q", machine, got, want)
	}
	for range h.s.Members(machine) {
		break // who has seen enough may stop
	}
}

// jealousLamp is one whose action has lost its reason once another lamp burns.
type jealousLamp struct{ countedLamp }

func (jealousLamp) Outdated(t *Thing, _ *journal.ActionRecord, w *World) string {
	for other, ready := range w.Members("lamp") {
		if other != t && ready {
			return other.Name + " burns"
		}
	}
	return ""
}

func TestAnActionMayLoseItsReasonByAnotherThing(t *testing.T) {
	of := lamps()
	of.Machine = jealousLamp{}
	h := newHouseOf(t, of)
	h.observe("hall", `{"lit":false}`)
	h.decided("thing.transitioned hall: Burning to Dark")
	h.now = h.now.Add(time.Minute)
	h.decided("action.requested hall", "thing.transitioned hall: Dark to Lighting")
	h.decided()
	h.observe("desk", `{"lit":true}`)
	events := Decide(h.s, h.p, h.now).Events
	i := slices.IndexFunc(events, func(d journal.Draft) bool { return d.Type == journal.TypeActionCancelling })
	if i < 0 || events[i].Payload.(journal.ActionCancelling).Reason != "desk burns" || events[i].Subject.Name != "hall" {
		t.Errorf("decided is %+v, want that the action of hall ends", events)
	}
}
