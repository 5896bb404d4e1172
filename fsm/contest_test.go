package fsm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// light lets EKCO light the lamp, which must be due.
func (h *house) light() {
	h.t.Helper()
	h.write(Decide(h.s, h.p, h.now).Events...)
	if len(h.s.Actions) != 1 {
		h.t.Fatalf("%d actions are open, refused: %+v", len(h.s.Actions), h.s.Refusals)
	}
	rec := h.s.OpenActions()[0]
	h.observe("hall", `{"lit":true}`)
	h.write(journal.Draft{Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Payload: journal.ActionEnded{Outcome: journal.OutcomeDone}})
	h.write(Decide(h.s, h.p, h.now).Events...)
}

// putOut lets somebody put the lamp out, and time pass until EKCO would light it.
func (h *house) putOut(after time.Duration) {
	h.t.Helper()
	h.now = h.now.Add(after - time.Minute)
	h.observe("hall", `{"lit":false}`)
	h.write(Decide(h.s, h.p, h.now).Events...)
	h.now = h.now.Add(time.Minute)
}

// wantContested wants EKCO to hold back, and returns when it tries again.
func (h *house) wantContested(pause time.Duration) {
	h.t.Helper()
	last := h.s.Things["Lamp/hall"].Contests["switch"].Last
	d := Decide(h.s, h.p, h.now)
	h.write(d.Events...)
	if len(h.s.Actions) != 0 || len(h.s.Refusals) != 1 || h.s.Refusals[0].Rule != RuleContested {
		h.t.Fatalf("open are %v, refused %+v", h.s.Actions, h.s.Refusals)
	}
	for _, word := range []string{"the switch of lamp hall", "off", "on", Stamp(d.Next)} {
		if !strings.Contains(h.s.Refusals[0].Reason, word) {
			h.t.Errorf("the reason does not name %q: %s", word, h.s.Refusals[0].Reason)
		}
	}
	if !d.Next.Equal(last.Add(pause)) {
		h.t.Fatalf("tries again %s after the last time, want %s", d.Next.Sub(last), pause)
	}
	h.now = d.Next
}

func TestWhatSomebodyUndoesTwiceWithinAnHourIsHeldAndTriedAgainWithGrowingPauses(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	h.putOut(time.Hour)
	h.light()
	h.putOut(20 * time.Minute)
	h.light()
	h.putOut(20 * time.Minute)
	for _, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
		h.wantContested(time.Duration(hours) * time.Hour)
		h.light()
		h.putOut(5 * time.Minute)
	}
}

func TestWhatIsUndoneNowAndThenIsDoneAgainAtOnce(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	for range 5 {
		h.putOut(70 * time.Minute)
		h.light()
	}
}

func TestAChangeAnHourLaterIsWithinTheHourAndOneASecondLaterIsNot(t *testing.T) {
	for between, contested := range map[time.Duration]bool{time.Hour: true, time.Hour + time.Second: false} {
		t.Run(between.String(), func(t *testing.T) {
			h := newHouse(t)
			h.p.Cooldown = 0
			h.observe("hall", `{"lit":true}`)
			h.putOut(time.Hour)
			h.light()
			h.putOut(between)
			h.light()
			h.putOut(20 * time.Minute)
			if contested {
				h.wantContested(time.Hour)
			}
			h.light()
		})
	}
}

func TestAContestIsOverOnceNobodyUndoesAnyMore(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	for range 2 {
		h.putOut(20 * time.Minute)
		h.light()
	}
	h.putOut(20 * time.Minute)
	h.wantContested(time.Hour)
	h.light()
	h.putOut(10 * time.Hour)
	for range 2 {
		h.light()
		h.putOut(5 * time.Minute)
	}
	h.wantContested(time.Hour)
}

func TestAContestOutlivesASnapshot(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	for range 2 {
		h.putOut(20 * time.Minute)
		h.light()
	}
	snapshot, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if h.s, err = LoadState(snapshot, lamps()); err != nil {
		t.Fatal(err)
	}
	h.putOut(20 * time.Minute)
	h.wantContested(time.Hour)
}

// retain folds again what the state needs of a journal whose older events, of more than
// a day ago, have left, and lets time pass until EKCO
// would light the lamp.
func (h *house) retain() {
	h.t.Helper()
	needs := h.s.Needs()
	h.s = NewState(lamps())
	for _, e := range h.events {
		if e.Seq == 1 || h.now.Sub(e.Time) < 24*time.Hour || needs.Keeps(e) {
			h.s.Apply(e)
		}
	}
	if len(h.s.Problems) != 0 {
		h.t.Errorf("problems: %q", h.s.Problems)
	}
	h.write(Decide(h.s, h.p, h.now).Events...)
	h.now = h.now.Add(time.Minute)
}

func TestAContestOutlivesWhatLeavesTheJournal(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	h.putOut(time.Hour)
	h.light()
	h.putOut(20 * time.Minute)
	h.light()
	h.putOut(20 * time.Minute)
	for _, hours := range []int{1, 2, 4, 8, 16, 24, 24, 24} {
		h.retain()
		h.wantContested(time.Duration(hours) * time.Hour)
		h.light()
		h.putOut(5 * time.Minute)
	}
}

func TestWhoDeletesAndCreatesAThingUndoesTheChangeOfIt(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	for i := range 3 {
		hall := journal.Subject{Kind: "Lamp", Name: "hall", UID: fmt.Sprint("uid-", i)}
		h.write(journal.Draft{
			Type: journal.TypeThingObserved, Subject: hall, Actor: "observer/lamp",
			Payload: journal.ThingObserved{Machine: "lamp", Facts: json.RawMessage(`{"lit":false}`)},
		})
		h.write(Decide(h.s, h.p, h.now).Events...)
		h.now = h.now.Add(time.Minute)
		if i == 2 {
			h.decided("policy.refused hall by Contested")
			return
		}
		h.decided("action.requested hall", "thing.transitioned hall: Dark to Lighting")
		h.write(
			journal.Draft{Type: journal.TypeActionEnded, Subject: hall, Action: h.s.OpenActions()[0].ID, Payload: journal.ActionEnded{Outcome: journal.OutcomeDone}},
			journal.Draft{Type: journal.TypeThingGone, Subject: hall, Actor: "observer/lamp", Payload: journal.ThingGone{Machine: "lamp"}},
		)
		h.write(Decide(h.s, h.p, h.now).Events...)
	}
}

// TestWhatWasChangedOfAThingIsTakenOverByTheNextOfItsNameAndKindAlone: one of another
// kind is another thing, and what is done of the next one is none of the former's.
func TestWhatWasChangedOfAThingIsTakenOverByTheNextOfItsNameAndKindAlone(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	h.changed("on", journal.OutcomeDone)
	at := h.s.Things["Lamp/hall"].Contests["switch"].Last
	if lantern := h.s.Add("lamp", journal.Subject{Kind: "Lantern", Name: "hall"}, "Dark", h.now); len(lantern.Contests) != 0 {
		t.Errorf("one of another kind took over %+v", lantern.Contests["switch"])
	}
	h = newHouse(t)
	h.observe("hall", `{"lit":false}`)
	h.changed("on", journal.OutcomeDone)
	next := h.s.Add("lamp", journal.Subject{Kind: "Lamp", Name: "hall", UID: "uid-next"}, "Dark", h.now)
	if taken := next.Contests["switch"]; taken == nil || !taken.Last.Equal(at) {
		t.Fatalf("the next one took over %+v", taken)
	}
	next.Contests["switch"] = &Contest{Last: h.now.Add(time.Hour)}
	if former := h.s.Things["Lamp/hall"].Contests["switch"]; !former.Last.Equal(at) {
		t.Errorf("the former one has what is the next one's: %+v", former)
	}
}

// bulb is a lamp whose bulbs burn out: nobody switches it off.
type bulb struct{ lamp }

func (bulb) Disputed(t *Thing, _ *journal.Change) (what, advice string) {
	return "the bulb of lamp " + t.Name + " burns out each time", "look at the wires"
}

func TestAMachineSaysInItsOwnWordsWhatUndoesItsChanges(t *testing.T) {
	own := lamps()
	own.Machine = bulb{}
	h := newHouseOf(t, own)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":true}`)
	for range 2 {
		h.putOut(20 * time.Minute)
		h.light()
	}
	h.putOut(20 * time.Minute)
	d := Decide(h.s, h.p, h.now)
	h.write(d.Events...)
	contest := h.s.Things["Lamp/hall"].Contests["switch"]
	want := "the bulb of lamp hall burns out each time, the last time after " + contest.Action + " of " + Stamp(contest.Last) +
		"; look at the wires; EKCO tries again at " + Stamp(d.Next)
	if len(h.s.Refusals) != 1 || h.s.Refusals[0].Reason != want {
		t.Errorf("refused are %+v\nwant %s", h.s.Refusals, want)
	}
}
