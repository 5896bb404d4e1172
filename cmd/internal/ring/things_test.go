package ring

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestASourceIsToldWhichEventToldOfAThingLast(t *testing.T) {
	s := fsm.NewState(fsm.Capability{Machine: lampMachine{}, Kinds: lampKinds(), Rules: lampRules()})
	desk := s.Add(lampName, journal.Subject{Kind: lampKind, Name: "desk"}, lampDark, time.Time{})
	desk.FactsSeq = 7
	for thing := range things(s) {
		if thing.Newest != 7 || thing.Gone {
			t.Errorf("told is %+v", thing)
		}
	}
	desk.GoneSeq = 9
	for thing := range things(s) {
		if thing.Newest != 9 || !thing.Gone {
			t.Errorf("told is %+v", thing)
		}
	}
}
