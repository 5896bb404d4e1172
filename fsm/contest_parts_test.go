package fsm

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// make has an action change these parts of the lamp, and end.
func (h *house) make(id string, parts ...string) {
	h.t.Helper()
	change := partsOf(parts...)
	h.write(
		journal.Draft{
			Type: journal.TypeActionRequested, Subject: subject("hall"), Action: id,
			Payload: journal.ActionRequested{Kind: lampKind, Reason: "so", Change: h.s.Things["Lamp/hall"].withPauses(change, h.now)},
		},
		journal.Draft{Type: journal.TypeActionEnded, Subject: subject("hall"), Action: id, Payload: journal.ActionEnded{Outcome: journal.OutcomeDone}},
	)
}

func partsOf(parts ...string) *journal.Change {
	return &journal.Change{Key: "bulbs", Field: "the bulbs", From: "none", To: "some", Parts: parts}
}

// contested expects that of a change of these parts.
func (h *house) contested(want bool, parts ...string) {
	h.t.Helper()
	if got := NewWorld(h.s, h.p, h.now).Contested(h.s.Things["Lamp/hall"], partsOf(parts...)); got != want {
		h.t.Errorf("a change of %q is contested: %t, want %t", parts, got, want)
	}
}

func TestEachPartOfAChangeIsContestedByItself(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":true}`)
	h.make("1", "a")
	h.contested(false, "a")
	h.now = h.now.Add(time.Minute)
	h.make("2", "a", "b") // another whole, and a for the second time
	h.contested(true, "a")
	h.contested(true, "c", "a")
	h.contested(false, "b")
	h.contested(false, "c")
	h.now = h.now.Add(time.Minute)
	h.make("3", "b")
	h.contested(true, "b")
	h.now = h.now.Add(time.Hour)
	h.contested(false, "a", "b")
	h.make("4", "a", "b", "c") // that a and b were waited for is nothing of c's
	h.contested(true, "a")
	h.contested(true, "b")
	h.contested(false, "c")
	h.now = h.now.Add(time.Hour + time.Minute)
	h.contested(true, "a") // the pauses grow
	h.now = h.now.Add(time.Hour)
	h.contested(false, "a")
}

func TestPartsThatWereChangedLongAgoAreForgotten(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":true}`)
	for i := range 100 {
		h.make(string(rune('A'+i)), string(rune('A'+i)))
		h.now = h.now.Add(time.Hour)
	}
	if n := len(h.s.Things["Lamp/hall"].Contests); n > 3 {
		t.Errorf("%d parts are kept", n)
	}
}
