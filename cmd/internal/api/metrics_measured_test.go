package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// scale is a machine of things that weigh something.
type scale struct{ fsm.Machine }

func (scale) Name() string       { return "scale" }
func (scale) New(*fsm.Thing) any { return new(float64) }
func (scale) Table() fsm.Table {
	return fsm.Table{Name: "scale", Title: "A scale", Initial: "Still", Over: []string{"Gone"}, Transitions: []fsm.Transition{
		{Event: "gone", From: []string{"Still"}, To: "Gone", When: "it is gone", Report: func(*fsm.Thing, journal.State, time.Time) fsm.Report { return fsm.Report{} }},
	}}
}
func (scale) Fold(*fsm.State, journal.Event, journal.Payload) bool { return false }
func (scale) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	return json.Unmarshal(facts, t.Data)
}
func (scale) Gone(*fsm.Thing, journal.Event, string) {}

// Measures implements [fsm.Machine].
func (scale) Measures(t *fsm.Thing, _ *fsm.World, tell func(fsm.Measure)) {
	weight := *t.Data.(*float64)
	tell(fsm.Measure{Name: "scale_kilograms", Help: "Weight.", Value: weight})
	tell(fsm.Measure{Name: "scale_part", Help: "Parts.", Label: "part", Of: "bowl", Value: weight / 2})
}

func TestWhatAMachineMeasuresIsAMetric(t *testing.T) {
	state, m := fsm.NewState(fsm.Capability{Machine: scale{}}), NewMetrics()
	show := func(want string) {
		t.Helper()
		m.State(fsm.NewWorld(state, fsm.Policy{}, time.Now()))
		if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "ekco_scale_kilograms", "ekco_scale_part"); err != nil {
			t.Error(err)
		}
	}
	apply := func(seq uint64, payload journal.Payload) {
		t.Helper()
		subject := journal.Subject{Kind: "Scale", Name: "kitchen"}
		event, err := journal.Draft{Type: journal.TypeOf(payload), Actor: "observer/scale", Subject: subject, Payload: payload}.Event()
		if err != nil {
			t.Fatal(err)
		}
		event.Seq, event.Time = seq, time.Now()
		state.Apply(event)
	}
	show("")
	apply(1, journal.ThingObserved{Machine: "scale", Facts: json.RawMessage("3")})
	show(`# HELP ekco_scale_kilograms Weight.
# TYPE ekco_scale_kilograms gauge
ekco_scale_kilograms{object="Scale kitchen"} 3
# HELP ekco_scale_part Parts.
# TYPE ekco_scale_part gauge
ekco_scale_part{object="Scale kitchen",part="bowl"} 1.5
`)
	apply(2, journal.ThingGone{Machine: "scale", Reason: "so"})
	show("")
}
