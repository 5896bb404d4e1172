package api

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// heating is a machine that is not called as its things are.
type heating struct{ fsm.Machine }

func (heating) Name() string { return "heating" }

func (heating) Table() fsm.Table { return fsm.Table{Name: "heating", Initial: "Cold"} }

func (heating) New(*fsm.Thing) any { return new(json.RawMessage) }

func TestAThingIsFoundByItsMachineAndByItsKindTheOneSeenLastFirst(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := fsm.NewState(fsmnode.Capability(), fsm.Capability{Machine: heating{}})
	for i, uid := range []string{"u-1", "u-2", "u-3"} {
		stove := s.Add("heating", journal.Subject{Kind: "Stove", Name: "hall", UID: uid}, "Cold", now)
		stove.FactsSeq = uint64(i + 1)
	}
	s.Refusals = []fsm.Refusal{{Rule: "about all nodes", Kind: journal.ActionPurgeNode, Subject: journal.ClusterSubject}}
	for _, kind := range []string{"heating", "Heating", "stove", "Stove"} {
		got, err := ExplainThings(s, now, ThingRequest{Kind: kind, Name: "hall"})
		if err != nil || len(got) != 3 || got[0].Subject.UID != "u-3" || got[2].Subject.UID != "u-1" {
			t.Fatalf("%s/hall: %+v, %v", kind, got, err)
		}
		if len(got[0].Refusals) != 0 {
			t.Errorf("%s/hall is kept from what is about nodes: %+v", kind, got[0].Refusals)
		}
	}
}
