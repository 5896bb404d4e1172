package fsm

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestWhatWasDoneIsWantedAgainOnceSomethingNewWasSeenOrAfterARest(t *testing.T) {
	h := newHouse(t)
	const rest = time.Minute
	ended := h.now.Add(-time.Hour)
	for name, test := range map[string]struct {
		last   *Ending
		facts  uint64
		dryRun bool
		due    time.Time
		may    bool
	}{
		"never done":                           {may: true},
		"something new was seen":               {last: &Ending{Outcome: journal.OutcomeDone, Seq: 5, At: ended}, facts: 6, may: true},
		"nothing new was seen":                 {last: &Ending{Outcome: journal.OutcomeDone, Seq: 5, At: ended}, facts: 4, due: ended.Add(rest), may: true},
		"it was only played":                   {last: &Ending{Outcome: journal.OutcomeDryRun, Seq: 5, At: ended}, facts: 4, may: true},
		"it was only played and still is":      {last: &Ending{Outcome: journal.OutcomeDryRun, Seq: 5, At: ended}, facts: 4, dryRun: true},
		"played, and something new was seen":   {last: &Ending{Outcome: journal.OutcomeDryRun, Seq: 5, At: ended}, facts: 6, dryRun: true, may: true},
		"done, nothing new, and now a dry run": {last: &Ending{Outcome: journal.OutcomeDone, Seq: 5, At: ended}, facts: 4, dryRun: true, due: ended.Add(rest), may: true},
	} {
		thing := h.s.New("lamp", subject("hall"), "Dark", h.now)
		thing.FactsSeq = test.facts
		if test.last != nil {
			thing.Last = map[journal.ActionKind]*Ending{lampKind: test.last}
		}
		if due, may := thing.RepeatDue(lampKind, Policy{DryRun: test.dryRun}, rest); !due.Equal(test.due) || may != test.may {
			t.Errorf("%s: due %s, may %t", name, due, may)
		}
	}
}

func TestAChangeThatWasMadeOrIsAnotherIsWantedAtOnce(t *testing.T) {
	h := newHouse(t)
	ended := h.now.Add(-time.Minute)
	for name, test := range map[string]struct {
		outcome journal.Outcome
		other   bool
		due     time.Time
	}{
		"done":               {outcome: journal.OutcomeDone},
		"ended early":        {outcome: journal.OutcomeAbandoned, due: ended.Add(RetryAfter)},
		"made, ended early":  {outcome: journal.OutcomeAbandoned, other: true},
		"there was none yet": {},
	} {
		thing := h.s.New("lamp", subject("hall"), "Dark", h.now)
		if test.outcome != "" {
			thing.Last = map[journal.ActionKind]*Ending{lampKind: {Outcome: test.outcome, Seq: 5, At: ended}}
		}
		if due, may := thing.RetryChange(lampKind, test.other, Policy{}); !due.Equal(test.due) || !may {
			t.Errorf("%s: due %s, may %t", name, due, may)
		}
	}
}

func TestAPauseIsDoubledUpToItsMost(t *testing.T) {
	for times, want := range map[int]time.Duration{-1: 2, 0: 2, 1: 4, 2: 8, 3: 10, 1 << 40: 10} {
		if got := Doubled(2, 10, times); got != want {
			t.Errorf("%d times: %d, want %d", times, got, want)
		}
	}
	if got := Doubled(20, 10, 0); got != 10 {
		t.Errorf("a first one over the most is %d", got)
	}
}
