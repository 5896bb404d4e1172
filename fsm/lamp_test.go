package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

// lampKind lights lamps, one at a time.
const lampKind journal.ActionKind = "light-lamp"

// lamp is a machine of things that shall burn, with no event type of its own.
type lamp struct{ Base }

type lampData struct {
	Lit bool `json:"lit"`
}

func lit(t *Thing) bool { return t.Data.(*lampData).Lit }

func (lamp) Name() string { return "lamp" }

func (lamp) Table() Table {
	says := func(reason string) func(*Thing, journal.State, time.Time) Report {
		return func(t *Thing, _ journal.State, _ time.Time) Report {
			return Report{Reason: reason, Cause: t.FactsSeq}
		}
	}
	return Table{
		Name: "lamp", Title: "A lamp", Initial: "Burning", Finals: []string{"Broken"}, Over: []string{"Broken"},
		Transitions: []Transition{
			{"out", []string{"Burning"}, "Dark", "it does not burn", says("it does not burn")},
			{"light", []string{"Dark"}, "Lighting", "a light-lamp action is open", says("it is being lit")},
			{"lit", []string{"Dark", "Lighting"}, "Burning", "it burns", says("it burns")},
			{"broke", []string{"Dark", "Lighting"}, "Broken", "it is gone", says("it is gone")},
		},
	}
}

func (lamp) New(*Thing) any { return &lampData{} }

func (lamp) Fold(*State, journal.Event, journal.Payload) bool { return false }

func (lamp) Observed(t *Thing, _ journal.Event, facts json.RawMessage) error {
	return json.Unmarshal(facts, t.Data)
}

func (lamp) Gone(*Thing, journal.Event, string) {}

func (lamp) Goal(t *Thing, _ journal.State, w *World) journal.State {
	switch {
	case t.GoneSeq != 0:
		return "Broken"
	case lit(t):
		return "Burning"
	case len(w.Open(t)) > 0:
		return "Lighting"
	}
	return "Dark"
}

func (lamp) Wants(t *Thing, w *World, want func(Want)) {
	if !lit(t) && t.GoneSeq == 0 && len(w.Open(t)) == 0 {
		want(Want{
			Kind: lampKind, Due: t.Since.Add(time.Minute), Rank: t.Since,
			Change: &journal.Change{Key: "switch", Field: "the switch of lamp " + t.Name, From: "off", To: "on"},
		})
	}
}

func (lamp) Request(t *Thing, _ *ActionKind, _ *World) (journal.ActionRequested, uint64) {
	return journal.ActionRequested{Reason: "it does not burn"}, t.FactsSeq
}

func (lamp) Obsolete(t *Thing, _ *journal.ActionRecord) string {
	if lit(t) {
		return "it burns"
	}
	return ""
}

func lamps() Capability {
	forbidden := Rule{
		Name:    "Daylight",
		Refuses: func(_ *World, t *Thing, _ *ActionKind) bool { return t.Name == "window" },
		Reason:  func(*World, *Thing, *ActionKind) string { return "there is daylight" },
	}
	return Capability{
		Machine: lamp{}, Rules: []Rule{forbidden},
		Kinds: []ActionKind{{
			Name: lampKind, Verb: "light", Machine: "lamp", Turn: "only one lamp is lit at a time",
			Rules: []string{RuleSettling, RulePaused, "Daylight", RuleBackOff, RuleOneAtATime, RuleCooldown},
		}},
	}
}

// house is a journal in memory, folded and decided upon.
type house struct {
	t   *testing.T
	s   *State
	p   Policy
	now time.Time
	// events are the whole journal.
	events []journal.Event
}

func newHouse(t *testing.T) *house { return newHouseOf(t, lamps()) }

func newHouseOf(t *testing.T, lamps Capability) *house {
	h := &house{t: t, s: NewState(lamps), p: Policy{Cooldown: time.Hour}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	h.write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "1"}})
	return h
}

func (h *house) write(drafts ...journal.Draft) {
	h.t.Helper()
	for _, draft := range drafts {
		body, version, err := draft.Encode()
		if err != nil {
			h.t.Fatal(err)
		}
		e := journal.Event{
			Seq: h.s.Seq + 1, Time: h.now, Type: draft.Type, Version: version, Subject: draft.Subject,
			Action: draft.Action, Cause: draft.Cause, Actor: draft.Actor, Payload: body,
		}
		h.events = append(h.events, e)
		h.s.Apply(e)
	}
	if len(h.s.Problems) > 0 {
		h.t.Fatalf("problems: %q", h.s.Problems)
	}
}

func subject(name string) journal.Subject { return journal.Subject{Kind: "Lamp", Name: name} }

func (h *house) observe(name, facts string) {
	h.t.Helper()
	h.write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: subject(name), Actor: "observer/lamp",
		Payload: journal.ThingObserved{Machine: "lamp", Facts: json.RawMessage(facts)},
	})
}

// decided decides, folds what was decided, and says what it was.
func (h *house) decided(want ...string) time.Time {
	h.t.Helper()
	d := Decide(h.s, h.p, h.now)
	got := []string{}
	for _, draft := range d.Events {
		text := fmt.Sprintf("%s %s", draft.Type, draft.Subject.Name)
		if p, is := draft.Payload.(journal.ThingTransitioned); is {
			text += fmt.Sprintf(": %s to %s", p.From, p.To)
		}
		if p, is := draft.Payload.(journal.PolicyRefused); is {
			text += " by " + p.Rule
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		h.t.Fatalf("decided (-want +got):\n%s", diff)
	}
	h.write(d.Events...)
	return d.Next
}

func TestAMachineOfAnotherSortRunsOnTheEngineAlone(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":true}`)
	h.decided()
	h.observe("hall", `{"lit":false}`)
	h.observe("yard", `{"lit":false}`)
	h.observe("window", `{"lit":false}`)
	h.decided("thing.transitioned hall: Burning to Dark", "thing.transitioned window: Burning to Dark", "thing.transitioned yard: Burning to Dark")
	if next := h.decided(); !next.Equal(h.now.Add(time.Minute)) {
		t.Fatalf("decides again at %s", next)
	}
	h.now = h.now.Add(time.Minute)
	h.decided("action.requested hall", "thing.transitioned hall: Dark to Lighting", "policy.refused  by OneAtATime", "policy.refused window by Daylight")
	rec := h.s.OpenActions()[0]
	if rec.Kind != lampKind || !strings.HasPrefix(rec.ID, "light-hall-") {
		t.Fatalf("the action is %+v", rec)
	}
	if got := CheckRule(h.s, h.p, h.now, RuleOneAtATime, rec); got.Hold {
		t.Errorf("held: %s", got.Reason)
	}

	h.observe("hall", `{"lit":true}`)
	h.decided("action.cancelling hall", "thing.transitioned hall: Lighting to Burning")
	h.write(journal.Draft{
		Type: journal.TypeActionEnded, Subject: subject("hall"), Action: rec.ID, Payload: journal.ActionEnded{Outcome: journal.OutcomeDone},
	})
	if last := h.s.Things["Lamp/hall"].Last[lampKind]; last == nil || last.Action != rec.ID {
		t.Errorf("the last action is %+v", last)
	}
	h.decided("policy.refused  by Cooldown")
	h.write(journal.Draft{
		Type: journal.TypeThingGone, Subject: subject("yard"), Payload: journal.ThingGone{Machine: "lamp", Reason: "stolen"},
	})
	h.decided("thing.transitioned yard: Dark to Broken", "policy.lifted ")
}

func TestNoMachineCancelsWhatIsPastItsPointOfNoReturn(t *testing.T) {
	for name, past := range map[string]bool{"before it": false, "past it": true} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.observe("hall", `{"lit":false}`)
			h.decided("thing.transitioned hall: Burning to Dark")
			h.now = h.now.Add(time.Minute)
			h.decided("action.requested hall", "thing.transitioned hall: Dark to Lighting")
			act := func(payload journal.Payload) {
				h.write(journal.Draft{
					Type: journal.TypeOf(payload), Subject: subject("hall"), Action: h.s.OpenActions()[0].ID, Payload: payload,
				})
			}
			act(journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "switch", Irreversible: past}}}})
			act(journal.StepStarted{Step: "switch", Attempt: 1})
			h.observe("hall", `{"lit":true}`)
			if !past {
				h.decided("action.cancelling hall", "thing.transitioned hall: Lighting to Burning")
				return
			}
			h.decided("thing.transitioned hall: Lighting to Burning")
		})
	}
}

func TestASnapshotKeepsThingsOfEveryMachineAndIsReadByNoOtherList(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	h.decided("thing.transitioned hall: Burning to Dark")
	snapshot, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadState(snapshot, lamps())
	if err != nil {
		t.Fatal(err)
	}
	again, err := loaded.Snapshot()
	if err != nil || !bytes.Equal(again.State, snapshot.State) || lit(loaded.Things["Lamp/hall"]) {
		t.Errorf("%v: the snapshot\n%s\nis read as\n%s", err, snapshot.State, again.State)
	}
	if _, err := LoadState(snapshot); err == nil {
		t.Error("an EKCO without lamps takes the snapshot over")
	}
}

func TestFactsThatNoMachineReadsAreProblemsAndNoThings(t *testing.T) {
	for name, p := range map[string]journal.ThingObserved{
		"another machine": {Machine: "stove", Facts: json.RawMessage(`{}`)},
		"other facts":     {Machine: "lamp", Facts: json.RawMessage(`{"lit":7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			body, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			h.s.Apply(journal.Event{Seq: h.s.Seq + 1, Time: h.now, Type: journal.TypeThingObserved, Version: 1, Subject: subject("hall"), Payload: body})
			known := h.s.Things["Lamp/hall"]
			if len(h.s.Problems) != 1 || (known != nil && known.FactsSeq != 0) {
				t.Errorf("problems %q, thing %+v", h.s.Problems, known)
			}
		})
	}
}

func TestRetentionKeepsTheLastFactsOfEveryThing(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":true}`)
	h.observe("hall", `{"lit":true}`)
	h.observe("hall", `{"lit":false}`)
	needs := h.s.Needs()
	var kept []uint64
	for seq := range h.s.Seq {
		if needs.Keeps(journal.Event{Seq: seq + 1, Type: journal.TypeThingObserved}) {
			kept = append(kept, seq+1)
		}
	}
	if !slices.Equal(kept, []uint64{2, 4}) {
		t.Errorf("kept are the events %v", kept)
	}
}
