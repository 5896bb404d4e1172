package fsm

import (
	"testing"

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
	h.write(journal.Draft{Type: journal.TypeThingGone, Subject: subject("hall"), Payload: journal.ThingGone{Machine: "lamp"}})
	want("lamp", 1, 0)
}
