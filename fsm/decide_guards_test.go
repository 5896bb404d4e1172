package fsm

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// darkHouse has lamps that have been dark for long enough, in the order of their facts.
func darkHouse(t *testing.T, names ...string) *house {
	h := newHouseWithATorch(t)
	h.write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "1"}})
	for _, name := range names {
		h.observe(name, `{"lit":false}`)
	}
	h.write(Decide(h.s, h.p, h.now).Events...)
	h.now = h.now.Add(time.Minute)
	return h
}

func TestEachThingThatARuleIsAboutHasARefusalAndTheClusterHasOneWithTheOldestFacts(t *testing.T) {
	for range 10 { // maps have no order
		h := darkHouse(t, "desk", "hall")
		for _, word := range []string{"desk", "lamp/hall"} {
			if err := h.pauses(word); err != nil {
				t.Fatal(err)
			}
		}
		h.decided("policy.refused desk by Paused", "policy.refused hall by Paused")
		if err := h.pauses(""); err != nil {
			t.Fatal(err)
		}
		h.decided("policy.refused  by Paused", "policy.lifted desk", "policy.lifted hall")
		if cause := h.events[len(h.events)-3].Cause; cause != h.s.Things["Lamp/desk"].FactsSeq {
			t.Fatalf("it is refused because of event %d, want %d", cause, h.s.Things["Lamp/desk"].FactsSeq)
		}
	}
}

func TestPausesThatEndTogetherEndInOrder(t *testing.T) {
	for range 10 { // maps have no order
		h := newHouseWithATorch(t)
		for _, word := range []string{"torch/hall", "lamp/hall"} {
			drafts, err := Pause(h.s, h.now, word, "why", time.Minute, "cli:me@here")
			if err != nil {
				t.Fatal(err)
			}
			h.write(drafts...)
		}
		events := Decide(h.s, h.p, h.now.Add(time.Minute)).Events
		if len(events) != 2 || events[0].Subject.Kind != "Lamp" || events[1].Subject.Kind != "Torch" {
			t.Fatalf("they end as %+v", events)
		}
	}
}

func TestAPersonIsNotWarnedThatEKCOSettles(t *testing.T) {
	h := newHouse(t)
	h.p.Settling = time.Hour
	h.observe("hall", `{"lit":false}`)
	rec := journal.ActionRecord{ID: "light-hall-1", Kind: lampKind, Subject: subject("hall")}
	if got := CheckRule(h.s, h.p, h.now, RuleSettling, rec); !got.Hold {
		t.Errorf("what EKCO began: %+v", got)
	}
	rec.Request.Manual = true
	if got := CheckRule(h.s, h.p, h.now, RuleSettling, rec); got != (CheckResult{}) {
		t.Errorf("what a person asked for: %+v", got)
	}
}
