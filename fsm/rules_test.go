package fsm

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// torch is another machine, with things like those of lamps.
type torch struct{ lamp }

func (torch) Name() string { return "torch" }

func TestARuleAboutThingsOfOneMachineHoldsAnActionAboutThoseOfAnother(t *testing.T) {
	h := newHouse(t)
	h.s = NewState(lamps(), Capability{Machine: torch{}})
	hall := journal.Subject{Kind: "Torch", Name: "hall"}
	h.write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: hall, Actor: "observer/torch",
		Payload: journal.ThingObserved{Machine: "torch", Facts: json.RawMessage(`{"lit":false}`)},
	})
	rec := journal.ActionRecord{ID: "light-hall-1", Kind: lampKind, Subject: hall}
	for _, name := range []string{RulePaused, "Daylight", RuleBackOff} {
		if got := CheckRule(h.s, h.p, h.now, name, rec); !got.Hold || !strings.Contains(got.Reason, "torch hall") {
			t.Errorf("%s: got %+v, want a hold that names the torch", name, got)
		}
	}
}

func TestAStepWaitsWhileItsChangeIsContested(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	for range 2 {
		h.putOut(20 * time.Minute)
		h.light()
	}
	rec := journal.ActionRecord{ID: "light-hall-1", Kind: lampKind, Subject: subject("hall")}
	for key, holds := range map[string]bool{"switch": true, "dimmer": false} {
		rec.Request.Change = &journal.Change{Key: key, To: "on"}
		if got := CheckRule(h.s, h.p, h.now, RuleContested, rec); got.Hold != holds {
			t.Errorf("%s: got %+v", key, got)
		}
	}
}

func TestWhatIsSaidOfAnotherMachinesThingOrOfNoneChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		subject journal.Subject
		payload journal.Payload
	}{
		"another's facts":      {subject("hall"), journal.ThingObserved{Machine: "torch", Facts: json.RawMessage(`{"lit":true}`)}},
		"another's end":        {subject("hall"), journal.ThingGone{Machine: "torch"}},
		"another's transition": {subject("hall"), journal.ThingTransitioned{Machine: "torch", From: "Burning", To: "Dark", Event: "out"}},
		"a thing without name": {journal.Subject{}, journal.ThingObserved{Machine: "lamp", Facts: json.RawMessage(`{"lit":true}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.s = NewState(lamps(), Capability{Machine: torch{}})
			h.observe("hall", `{"lit":false}`)
			draft := journal.Draft{Type: journal.TypeOf(test.payload), Subject: test.subject, Payload: test.payload}
			body, version, err := draft.Encode()
			if err != nil {
				t.Fatal(err)
			}
			h.s.Apply(journal.Event{
				Seq: h.s.Seq + 1, Time: h.now, Type: draft.Type, Version: version, Subject: draft.Subject, Payload: body,
			})
			lamp := h.s.Things["Lamp/hall"]
			if len(h.s.Problems) != 1 || len(h.s.Things) != 1 || lit(lamp) || lamp.GoneSeq != 0 || lamp.State != "Burning" {
				t.Errorf("problems %q, things %v, the lamp %+v", h.s.Problems, h.s.Things, lamp)
			}
		})
	}
}

func TestACooldownIsThatOfTheKindWhereItHasOne(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{0: time.Hour, 10 * time.Second: 10 * time.Second} {
		of := lamps()
		of.Kinds[0].Cooldown = own
		h := newHouseOf(t, of)
		h.observe("yard", `{"lit":false}`)
		h.write(Decide(h.s, h.p, h.now).Events...)
		h.now = h.now.Add(time.Second)
		h.observe("hall", `{"lit":false}`)
		h.write(Decide(h.s, h.p, h.now).Events...)
		h.now = h.now.Add(time.Hour)
		h.write(Decide(h.s, h.p, h.now).Events...)
		rec := h.s.OpenActions()[0]
		h.observe("yard", `{"lit":true}`)
		h.write(journal.Draft{Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Payload: journal.ActionEnded{Outcome: journal.OutcomeDone}})
		d := Decide(h.s, h.p, h.now)
		h.write(d.Events...)
		if at := h.now.Add(want); len(h.s.Refusals) != 1 || !d.Next.Equal(at) || !strings.Contains(h.s.Refusals[0].Reason, Stamp(at)) {
			t.Errorf("%s: decides again at %s, want %s; refused are %+v", own, d.Next, at, h.s.Refusals)
		}
	}
}

// stalled plans the open action, and has its only step fail for good.
func (h *house) stalled(rec journal.ActionRecord) {
	h.t.Helper()
	for _, payload := range []journal.Payload{
		journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "switch"}}}},
		journal.StepStarted{Step: "switch", Attempt: 1},
		journal.StepFailed{Step: "switch", Attempt: 1, Error: "no ladder"},
		journal.ActionStalled{Step: "switch", Reason: "no ladder"},
	} {
		h.write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Payload: payload})
	}
}

func TestWhatStalledKeepsOthersOfItsKindFromBeginningUnlessTheKindSaysThatItYields(t *testing.T) {
	for yields, want := range map[bool][]string{
		false: {"policy.refused  by OneAtATime"},
		true:  {"action.requested yard", "thing.transitioned yard: Dark to Lighting"},
	} {
		of := lamps()
		of.Kinds[0].StalledYields = yields
		h := newHouseOf(t, of)
		h.p.Cooldown = 0
		h.observe("hall", `{"lit":false}`)
		h.decided("thing.transitioned hall: Burning to Dark")
		h.now = h.now.Add(time.Minute)
		h.decided("action.requested hall", "thing.transitioned hall: Dark to Lighting")
		first := h.s.OpenActions()[0]
		h.observe("yard", `{"lit":false}`)
		h.decided("thing.transitioned yard: Burning to Dark")
		h.stalled(first)
		h.now = h.now.Add(time.Minute)
		h.decided(want...)
	}
}

// What has an open step may be changing something, whatever its status.
func TestWhatStalledWithAStepStillOpenYieldsToNobody(t *testing.T) {
	of := lamps()
	of.Kinds[0].StalledYields = true
	h := newHouseOf(t, of)
	h.observe("hall", `{"lit":false}`)
	h.decided("thing.transitioned hall: Burning to Dark")
	h.now = h.now.Add(time.Minute)
	h.decided("action.requested hall", "thing.transitioned hall: Dark to Lighting")
	first := h.s.OpenActions()[0]
	h.stalled(first)
	again := journal.StepStarted{Step: "switch", Attempt: 2}
	h.write(journal.Draft{Type: journal.TypeOf(again), Subject: first.Subject, Action: first.ID, Payload: again})
	h.observe("yard", `{"lit":false}`)
	h.decided("thing.transitioned yard: Burning to Dark")
	h.now = h.now.Add(time.Minute)
	h.decided("policy.refused  by OneAtATime")
}
