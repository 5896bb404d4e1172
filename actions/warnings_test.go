package actions_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
)

const lossWarned = "warned " + purge.OSDSafeToDestroy + ": data may be lost: "

// answersLater has the purge asked for while Ceph is away, and lets Ceph answer a
// day later that data is on the node's OSDs alone.
func (s *whole) answersLater(request journal.ActionRequested) *running {
	s.ceph.Outage(true)
	s.ask(request)
	r := s.start(s.cfg())
	letPass(20 * time.Hour)
	s.ceph.Hold(true, 3, 12, 107)
	s.ceph.Outage(false)
	letPass(time.Hour)
	return r
}

// answer records what a person said to the present warning of the hold.
func (s *whole) answer(hold journal.ActionHeld) {
	warning, _, _ := strings.Cut(hold.Reason, "; nobody has been told")
	s.append("cli:me@here", journal.ActionWarned{Preflight: hold.Preflight, Key: hold.Key, Warning: warning, Answer: "yes"}, journal.TypeActionWarned)
}

var lostData = []string{"crush host [3 12 107]", "osd.3", "osd.12", "osd.107"}

func TestALossThatNobodyWasToldOfHoldsAPurgeThatGoesOnWithoutItsPerson(t *testing.T) {
	for name, restart := range map[string]bool{"the same EKCO": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := s.answersLater(journal.ActionRequested{Manual: true})
				if restart {
					r.halt()
					r = s.start(s.cfg())
				}
				letPass(time.Hour)
				s.wantTraces(lostData...)
				hold := s.record().Holds["purge-osd 3"]
				if hold.Preflight != purge.OSDSafeToDestroy || !strings.Contains(hold.Reason, "ekco purge-node w1") || s.count(lossWarned) != 0 {
					t.Errorf("held by %+v; %q", hold, s.story())
				}
				s.answer(hold)
				s.tell(r, journal.TypeActionWarned)
				r.end()
				s.wantTraces()
			})
		})
	}
}

func TestDataThatOtherOSDsHaveDoesNotHoldAPurgeThatGoesOnWithoutItsPerson(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(20 * time.Hour)
		s.ceph.Degrade(true, 3, 12, 107)
		s.ceph.Outage(false)
		r.end()
		s.wantTraces()
		if s.count("warned "+purge.OSDSafeToDestroy+": Ceph does not call it safe: ") != 1 {
			t.Errorf("that Ceph does not call it safe is not recorded once: %q", s.story())
		}
	})
}

func TestALossThatCephTakesBackHoldsNothingAnyMore(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.answersLater(journal.ActionRequested{Manual: true})
		s.wantTraces(lostData...)
		s.ceph.Hold(false, 3, 12, 107)
		r.end()
		s.wantTraces()
	})
}

func TestAForcedPurgeThatGoesOnLaterRecordsTheLoss(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.answersLater(journal.ActionRequested{Manual: true, Force: true}).end()
		s.wantTraces()
		if s.count(lossWarned) != 1 || !strings.Contains(strings.Join(s.story(), "\n"), "(--force)") {
			t.Errorf("the loss is not recorded once: %q", s.story())
		}
	})
}

func TestALossIsToldTheFirstTimeAfterThePlanOnlyToWhoIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		away time.Duration
		left []string
	}{
		"at once":         {0, nil},
		"an hour later":   {time.Hour, lostData},
		"after 9 minutes": {9 * time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.wait = test.away
				s.ceph.AfterEffect = func(effect string) {
					if strings.HasPrefix(effect, "osd-out") {
						s.ceph.Hold(true, 12)
					}
				}
				s.ask(journal.ActionRequested{Manual: true})
				r := s.start(s.cfg())
				letPass(5 * time.Hour)
				r.halt()
				s.wantTraces(test.left...)
				if told := s.count(lossWarned) == 1; told != (test.left == nil) {
					t.Errorf("the loss was told: %v; %q", told, s.story())
				}
			})
		})
	}
}

func TestALossThatWasAnsweredDoesNotHoldThePurgeAfterARestart(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Hold(true, 12)
		r := s.outageBeforeOut()
		if s.count(lossWarned) != 1 {
			t.Errorf("the loss is not recorded: %q", s.story())
		}
		r.halt()
		s.ceph.Outage(false)
		s.runToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestAWarningThatSaysSomethingElseIsRecordedAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		said := []string{"cannot tell: no answer", "1 of 3 is left", "2 of 3 are left", "1 of 3 are left", "it is gone for good", "cannot tell: no answer"}
		keys := []string{"unknown", "one", "some", "some", "gone", "unknown"}
		k := &script{}
		for i := range said {
			step := guarded(string(rune('a'+i)), "Doubts")
			if i > 0 {
				step.After = []string{string(rune('a' + i - 1))}
			}
			k.steps = append(k.steps, step)
		}
		asked := 0
		doubts := actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			asked++
			return actions.Warn(said[asked-1]).About(keys[asked-1])
		})
		cfg := withPreflights(w.config(k.kinds()), map[string]actions.Preflight{"Doubts": doubts})
		w.request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
		w.runToEnd(cfg)
		var got []string
		for _, line := range w.story() {
			if strings.HasPrefix(line, "warned ") {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(line, "warned Doubts: "), " (no terminal)"))
			}
		}
		want := []string{said[0], said[1], said[2], said[4]}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %q, want %q", got, want)
		}
	})
}

// Versions before keys recorded the words alone. They are no answer to a loss, however
// alike the words are.
func TestAnAnswerOfAVersionBeforeKeysIsNoneToALoss(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.answersLater(journal.ActionRequested{Manual: true})
		hold := s.record().Holds["purge-osd 3"]
		if hold.Key == "" {
			t.Fatalf("the hold of a loss has no key: %+v", hold)
		}
		keyed := hold
		hold.Key = ""
		s.answer(hold)
		s.tell(r, journal.TypeActionWarned)
		letPass(time.Hour)
		s.wantTraces(lostData...)
		s.answer(keyed)
		s.tell(r, journal.TypeActionWarned)
		r.end()
		s.wantTraces()
	})
}

func TestAnAnswerIsComparedByItsKeyWhateverTheWords(t *testing.T) {
	for name, test := range map[string]struct {
		answered journal.ActionWarned
		says     actions.Verdict
		news     bool
	}{
		"the key, in other words":           {journal.ActionWarned{Key: "k", Warning: "it rains"}, actions.Warn("it pours").About("k"), false},
		"the words, with another key":       {journal.ActionWarned{Key: "k", Warning: "it rains"}, actions.Warn("it rains").About("l"), true},
		"no key then and none now":          {journal.ActionWarned{Warning: "it rains"}, actions.Warn("it pours"), false},
		"no key then, one now":              {journal.ActionWarned{Warning: "it rains"}, actions.Warn("it rains").About("k"), true},
		"a key then, none now":              {journal.ActionWarned{Key: "k", Warning: "it rains"}, actions.Warn("it rains"), true},
		"a key of another preflight's, too": {journal.ActionWarned{Preflight: "Y", Key: "k", Warning: "it rains"}, actions.Warn("it rains").About("k"), true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
				w.request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
				test.answered.Preflight, test.answered.Answer = cmp.Or(test.answered.Preflight, "X"), "yes"
				w.append("cli:me@here", test.answered, journal.TypeActionWarned)
				w.runToEnd(w.guardedBy(k, always(test.says)))
				if got := w.count("warned X: "+test.says.Reason+" (no terminal)") == 1; got != test.news {
					t.Errorf("recorded anew: %v, want %v; %q", got, test.news, w.story())
				}
			})
		})
	}
}

func TestAHoldThatHadNoKeySaysItsReasonAtOnceWhereItHasOneNow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		w.append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: k.steps}}, journal.TypeActionPlanned)
		w.append("operator", journal.ActionHeld{Preflight: "X", Step: "a", Reason: "3 are missing"}, journal.TypeActionHeld)
		r := w.start(w.guardedBy(k, always(actions.Hold("2 are missing").About("missing"))))
		letPass(time.Minute)
		r.halt()
		if held := w.record().Holds["a"]; held.Reason != "2 are missing" || held.Key != "missing" {
			t.Errorf("held by %+v", held)
		}
	})
}
