package fsm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
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

func TestAnOlderContestReplacesNoNewerOne(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	h.putOut(time.Hour)
	h.light()
	before := h.s.Carried()
	h.putOut(20 * time.Minute)
	h.light()
	want, err := json.Marshal(h.s.Carried().Contests)
	if err != nil {
		t.Fatal(err)
	}
	h.write(TakeOver(h.s, Mirrored{Carried: before, Adopted: journal.JournalAdopted{JournalID: "first"}}, nil)...)
	if got, err := json.Marshal(h.s.Carried().Contests); err != nil || !bytes.Equal(got, want) || bytes.Equal(got, []byte("{}")) {
		t.Errorf("the contests are %s, %v, want %s", got, err, want)
	}
}

func TestNothingIsTakenOverWhereNothingIsNew(t *testing.T) {
	h := newHouse(t)
	if drafts := TakeOver(h.s, Mirrored{Carried: newHouse(t).s.Carried()}, nil); len(drafts) != 0 {
		t.Errorf("got %+v", drafts)
	}
}

func TestPausesThatAreTakenOver(t *testing.T) {
	const own, other = "own", "other"
	origin := func(id string, seq uint64) *journal.PauseOrigin { return &journal.PauseOrigin{JournalID: id, Seq: seq} }
	pause := func(seq uint64, reason string, origin *journal.PauseOrigin) journal.Pause {
		return journal.Pause{Reason: reason, By: "cli:me@here", Seq: seq, Origin: origin}
	}
	type pauses map[string]journal.Pause
	for name, c := range map[string]struct {
		own, mirrored pauses
		// reasons are those in force afterwards.
		reasons map[string]string
		// kept is the last event that this journal has not lost, 20 by default.
		kept uint64
	}{
		"one with the number of a lost event that the mirror's writer knew": {
			own: pauses{"": pause(9, "ours", nil)}, mirrored: pauses{}, kept: 8,
			reasons: map[string]string{"": "ours"},
		},
		"one that this journal lacks": {
			mirrored: pauses{"": pause(3, "theirs", nil)},
			reasons:  map[string]string{"": "theirs"},
		},
		"one that was ended there": {
			own: pauses{"": pause(10, "ours", nil)}, mirrored: pauses{},
			reasons: map[string]string{},
		},
		"one that the mirror's writer never knew": {
			own: pauses{"": pause(11, "ours", nil)}, mirrored: pauses{},
			reasons: map[string]string{"": "ours"},
		},
		"one of the mirror of an EKCO that kept none": {
			own:     pauses{"": pause(10, "ours", nil)},
			reasons: map[string]string{"": "ours"},
		},
		"one that was changed there": {
			own: pauses{"": pause(10, "ours", nil)}, mirrored: pauses{"": pause(3, "theirs", nil)},
			reasons: map[string]string{"": "theirs"},
		},
		"one that was changed here since": {
			own: pauses{"": pause(11, "ours", nil)}, mirrored: pauses{"": pause(3, "theirs", nil)},
			reasons: map[string]string{"": "ours"},
		},
		"one that this journal ended itself": {
			mirrored: pauses{"": pause(3, "theirs", origin(own, 20))},
			reasons:  map[string]string{},
		},
		"one that this journal has lost": {
			mirrored: pauses{"": pause(3, "theirs", origin(own, 21))},
			reasons:  map[string]string{"": "theirs"},
		},
		"one with the number of an own event": {
			mirrored: pauses{"": pause(3, "theirs", origin(other, 20))},
			reasons:  map[string]string{"": "theirs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.s.Journal.ID = own
			for key, pause := range c.own {
				h.s.Pauses[key] = pause
			}
			from := Mirrored{
				Carried: journal.Carried{Pauses: c.mirrored}, Knew: func(string) uint64 { return 10 }, Kept: cmp.Or(c.kept, 20),
				Adopted: journal.JournalAdopted{JournalID: other},
			}
			h.write(TakeOver(h.s, from, nil)...)
			reasons := map[string]string{}
			for key, pause := range h.s.Pauses {
				reasons[key] = pause.Reason
			}
			if !maps.Equal(reasons, c.reasons) {
				t.Errorf("in force are %q, want %q", reasons, c.reasons)
			}
			if again := TakeOver(h.s, from, nil); len(again) != 0 && h.s.Journal.Adopted != nil {
				t.Errorf("taken over a second time: %+v", again)
			}
		})
	}
}

// TestAMirrorCountsAsTakenOverOnlyIfItIsThatOne: journal, position and time must be those that were noted, and an older
// EKCO's mirror without a position never counts.
func TestAMirrorCountsAsTakenOverOnlyIfItIsThatOne(t *testing.T) {
	pause := func(reason string) map[string]journal.Pause {
		return map[string]journal.Pause{"": {Reason: reason, By: "cli:me@here", Seq: 3}}
	}
	at := journal.Position{Seq: 4}
	first := journal.JournalAdopted{JournalID: "other", Mirrored: at}
	for name, c := range map[string]struct {
		first, second journal.JournalAdopted
		want          bool
	}{
		"the same":                {first, first, false},
		"of another journal":      {first, journal.JournalAdopted{JournalID: "third", Mirrored: at}, true},
		"of an older EKCO, twice": {journal.JournalAdopted{JournalID: "other"}, journal.JournalAdopted{JournalID: "other"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			from := Mirrored{
				Carried: journal.Carried{Pauses: pause("theirs")}, Adopted: c.first, Knew: func(string) uint64 { return 0 }, Kept: 20,
			}
			h.write(TakeOver(h.s, from, nil)...)
			if drafts := TakeOver(h.s, from, nil); len(drafts) != 0 {
				t.Errorf("taken over or noted a second time: %+v", drafts)
			}
			delete(h.s.Pauses, "")
			from.Adopted = c.second
			if drafts := TakeOver(h.s, from, nil); (len(drafts) != 0) != c.want {
				t.Errorf("taken over is %+v", drafts)
			}
		})
	}
}
