package fsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// match is a machine of things that come and go in great numbers.
type match struct{ lamp }

func (match) Name() string { return "match" }

func (match) Table() Table {
	table := lamp{}.Table()
	table.Name, table.Keep = "match", 2
	return table
}

func (match) Wants(*Thing, *World, func(Want)) {}

func TestAMachineKeepsFewOfItsFinishedThingsAndTakesNoneOfOthers(t *testing.T) {
	h := newHouse(t)
	h.s = NewState(lamps(), Capability{Machine: match{}})
	tell := func(machine, name string, facts string) {
		of := journal.Subject{Kind: "Thing", Name: name}
		h.write(journal.Draft{Type: journal.TypeThingObserved, Subject: of, Payload: journal.ThingObserved{Machine: machine, Facts: []byte(facts)}})
	}
	gone := func(machine, name string) {
		of := journal.Subject{Kind: "Thing", Name: name}
		h.write(journal.Draft{Type: journal.TypeThingGone, Subject: of, Payload: journal.ThingGone{Machine: machine, Reason: "deleted"}})
	}
	decide := func() {
		h.now = h.now.Add(time.Second)
		h.write(Decide(h.s, h.p, h.now).Events...)
	}
	tell("lamp", "desk", `{"lit":false}`)
	decide()
	gone("lamp", "desk")
	decide()
	for i := range 5 {
		name := fmt.Sprintf("match-%d", i)
		tell("match", name, `{"lit":false}`)
		decide()
		gone("match", name)
		decide()
	}
	for name, want := range map[string]bool{"desk": true, "match-2": false, "match-3": true, "match-4": true} {
		if known := h.s.Things["Thing/"+name] != nil; known != want {
			t.Errorf("%s is known: %t, want %t", name, known, want)
		}
	}
	gone("match", "match-0") // which is forgotten, and no problem
}
