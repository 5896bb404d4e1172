package fsm

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestAContestIsCarriedToAnotherJournal(t *testing.T) {
	for name, known := range map[string]bool{"whose thing is known": true, "whose thing comes later": false} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.p.Cooldown = 0
			h.observe("hall", `{"lit":true}`)
			h.putOut(time.Hour)
			h.light()
			h.putOut(20 * time.Minute)
			h.light()

			other := newHouse(t)
			other.p.Cooldown, other.now = 0, h.now
			if known {
				other.observe("hall", `{"lit":true}`)
			}
			from := Mirrored{Carried: h.s.Carried(), Adopted: journal.JournalAdopted{JournalID: "first"}}
			other.write(TakeOver(other.s, from, nil)...)
			if !known {
				other.observe("hall", `{"lit":true}`)
			}
			if adopted := other.s.Journal.Adopted; adopted == nil || adopted.JournalID != "first" {
				t.Fatalf("adopted is %+v", adopted)
			}
			other.putOut(20 * time.Minute)
			other.wantContested(time.Hour)
		})
	}
}

func TestNothingIsTakenOverWhereNothingIsNew(t *testing.T) {
	h := newHouse(t)
	if drafts := TakeOver(h.s, Mirrored{Carried: newHouse(t).s.Carried()}, nil); len(drafts) != 0 {
		t.Errorf("got %+v", drafts)
	}
}
