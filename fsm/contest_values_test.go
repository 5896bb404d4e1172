package fsm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// changed plays an action that made the change to a value, and how it ended; steps are
// those that were done.
func (h *house) changed(to string, outcome journal.Outcome, steps ...string) {
	h.t.Helper()
	h.changedBy(journal.ActionRequested{Kind: lampKind, Change: switchTo(to)}, outcome, steps...)
}

func switchTo(value string) *journal.Change {
	return &journal.Change{Key: "switch", Field: "the switch of lamp hall", To: value}
}

// changedBy does so for an action that was asked for in that way.
func (h *house) changedBy(request journal.ActionRequested, outcome journal.Outcome, steps ...string) {
	h.t.Helper()
	of, id := subject("hall"), fmt.Sprintf("light-hall-%d", h.s.Seq)
	h.write(journal.Draft{Type: journal.TypeActionRequested, Subject: of, Action: id, Actor: ActorOperator, Payload: request})
	plan := journal.Plan{}
	for _, step := range steps {
		plan.Steps = append(plan.Steps, journal.PlannedStep{ID: step, Does: step})
	}
	h.write(journal.Draft{Type: journal.TypeActionPlanned, Subject: of, Action: id, Payload: journal.ActionPlanned{Plan: plan}})
	for _, step := range steps {
		h.write(journal.Draft{Type: journal.TypeStepStarted, Subject: of, Action: id, Payload: journal.StepStarted{Step: step, Attempt: 1}})
		h.write(journal.Draft{Type: journal.TypeStepDone, Subject: of, Action: id, Payload: journal.StepDone{Step: step, Attempt: 1}})
	}
	h.write(journal.Draft{Type: journal.TypeActionEnded, Subject: of, Action: id, Payload: journal.ActionEnded{Outcome: outcome}})
	h.now = h.now.Add(time.Minute)
}

func TestAChangeToAnotherValueIsNoFight(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":false}`)
	for range 3 {
		h.changed("on", journal.OutcomeDone)
		h.changed("dim", journal.OutcomeDone)
	}
	h.now = h.now.Add(time.Minute)
	h.light()
}

func TestAChangeThatWasUndoneBeforeItsActionEndedCounts(t *testing.T) {
	for name, steps := range map[string][]string{"made": {"switch-on"}, "not made": nil} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.p.Cooldown = 0
			h.observe("hall", `{"lit":false}`)
			h.changed("on", journal.OutcomeAbandoned, steps...)
			h.changed("on", journal.OutcomeAbandoned, steps...)
			h.observe("hall", `{"lit":false}`) // it does not rest for having been in vain
			h.write(Decide(h.s, h.p, h.now).Events...)
			h.now = h.now.Add(time.Minute)
			if steps == nil {
				h.light()
				return
			}
			h.wantContested(time.Hour)
		})
	}
}

// TestWhatWasTakenBackOrOnlyPlayedIsNoChange: a cancelled action takes back what it did,
// and the steps of a dry run did nothing.
func TestWhatWasTakenBackOrOnlyPlayedIsNoChange(t *testing.T) {
	change := journal.ActionRequested{Kind: lampKind, Change: switchTo("on")}
	played := change
	played.DryRun = true
	for name, of := range map[string]struct {
		request journal.ActionRequested
		outcome journal.Outcome
	}{
		"cancelled":                {change, journal.OutcomeCancelled},
		"a dry run":                {played, journal.OutcomeDryRun},
		"a dry run that was ended": {played, journal.OutcomeAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.p.Cooldown = 0
			h.observe("hall", `{"lit":false}`)
			for range 3 {
				h.changedBy(of.request, of.outcome, "switch-on")
			}
			if contests := h.s.Things["Lamp/hall"].Contests; len(contests) != 0 {
				t.Errorf("it counts: %+v", contests["switch"])
			}
		})
	}
}

// TestAPauseThatWasWaitedForIsNotForgottenWhileTheActionLasts: it ends when the time for
// which a contest is remembered is over.
func TestAPauseThatWasWaitedForIsNotForgottenWhileTheActionLasts(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	h.changed("on", journal.OutcomeDone)
	h.changed("on", journal.OutcomeDone)
	again := switchTo("on")
	again.Pauses = 3
	h.now = h.now.Add(9 * time.Hour)
	h.changedBy(journal.ActionRequested{Kind: lampKind, Change: again}, journal.OutcomeDone)
	if contest := h.s.Things["Lamp/hall"].Contests["switch"]; contest.Pauses != 3 || !contest.retryAt().Equal(contest.Last.Add(8*time.Hour)) {
		t.Errorf("the contest is %+v, until %s", contest, contest.retryAt())
	}
}

func TestAContestIsRememberedForAnHourAfterItsPause(t *testing.T) {
	last := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, of := range map[string]struct {
		contest *Contest
		after   time.Duration
		want    int
	}{
		"nothing was changed":         {nil, time.Hour, 0},
		"it was changed once":         {&Contest{Last: last}, time.Hour, 0},
		"long ago before":             {&Contest{Last: last, Before: last.Add(-61 * time.Minute)}, time.Hour, 0},
		"undone after the pause":      {&Contest{Last: last, Before: last.Add(-time.Minute)}, 2*time.Hour - 1, 1},
		"undone an hour later":        {&Contest{Last: last, Before: last.Add(-time.Minute)}, 2 * time.Hour, 0},
		"undone after a longer pause": {&Contest{Last: last, Pauses: 2}, 5*time.Hour - 1, 3},
		"and an hour later":           {&Contest{Last: last, Pauses: 2}, 5 * time.Hour, 0},
	} {
		if got := of.contest.pausesBy(last.Add(of.after)); got != of.want {
			t.Errorf("%s: it has waited %d times, want %d", name, got, of.want)
		}
	}
}

func TestAPauseGrowsToADayHoweverOftenItWasWaitedFor(t *testing.T) {
	for pauses, hours := range map[int]int{0: 1, 1: 2, 4: 16, 5: 24, 6: 24, 1000: 24} {
		if got := (&Contest{Pauses: pauses}).retryAt().Sub(time.Time{}); got != time.Duration(hours)*time.Hour {
			t.Errorf("after %d pauses it waits %s, want %d h", pauses, got, hours)
		}
	}
}

// TestAContestIsAsOldAsItWasThoughTheClockWasSet: of a journal from which what is not
// needed has left, the same time follows.
func TestAContestIsAsOldAsItWasThoughTheClockWasSet(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	h.changed("on", journal.OutcomeDone)
	h.now = h.now.Add(5 * time.Hour)
	h.write(journal.Draft{
		Type: journal.TypeClockJumped, Subject: journal.OperatorSubject, Actor: ActorOperator,
		Payload: journal.ClockJumped{By: journal.Duration(5 * time.Hour)},
	})
	h.observe("hall", `{"lit":false}`)
	h.changedBy(journal.ActionRequested{Kind: lampKind}, journal.OutcomeDone) // the last one, and no change
	want, needs, folded := h.s.Things["Lamp/hall"].Contests["switch"].Last, h.s.Needs(), NewState(lamps())
	for _, e := range h.events {
		if e.Seq == 1 || needs.Keeps(e) {
			folded.Apply(e)
		}
	}
	if contest := folded.Things["Lamp/hall"].Contests["switch"]; contest == nil || !contest.Last.Equal(want) {
		t.Errorf("the change was made last at %s, and is known as %+v", want, contest)
	}
}

func TestTheIDOfAnActionHasNoSlash(t *testing.T) {
	h := newHouse(t)
	if id := h.s.ActionID(h.s.Kind(lampKind), subject("cellar/hall")); !strings.HasPrefix(id, "light-cellar-hall-") {
		t.Errorf("the id is %q", id)
	}
}
