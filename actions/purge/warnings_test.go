package purge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
)

const lossWarned = "warned " + purge.OSDSafeToDestroy + ": data may be lost: "

// answersLater has the purge asked for while Ceph is away, and lets Ceph answer a
// day later that data is on the node's OSDs alone.
func (s *whole) answersLater(request journal.ActionRequested) *actionstest.Running {
	s.ceph.Outage(true)
	s.ask(request)
	r := s.Start(s.cfg())
	s.Pass(20 * time.Hour)
	s.ceph.SetOnlyCopy(true, 3, 12, 107)
	s.ceph.Outage(false)
	s.Pass(time.Hour)
	return r
}

// answer records what a person said to the present warning of the hold.
func (s *whole) answer(hold journal.ActionHeld) {
	warning, _, _ := strings.Cut(hold.Reason, "; no person has seen")
	s.Append("cli:me@here", journal.ActionWarned{Preflight: hold.Preflight, Key: hold.Key, Warning: warning, Answer: "yes"}, journal.TypeActionWarned)
}

var lostData = []string{"crush host [3 12 107]", "osd.3", "osd.12", "osd.107"}

func TestALossThatNobodyWasToldOfHoldsAPurgeThatGoesOnWithoutItsPerson(t *testing.T) {
	for name, restart := range map[string]bool{"the same EKCO": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := s.answersLater(journal.ActionRequested{Manual: true})
				if restart {
					r.Halt()
					r = s.Start(s.cfg())
				}
				s.Pass(time.Hour)
				s.wantTraces(lostData...)
				hold := s.Record().Holds["purge-osd 3"]
				if hold.Preflight != purge.OSDSafeToDestroy || !strings.Contains(hold.Reason, "ekco purge-node w1") || s.Count(lossWarned) != 0 {
					t.Errorf("held by %+v; %q", hold, s.Story())
				}
				s.answer(hold)
				s.Tell(r, journal.TypeActionWarned)
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestDataThatOtherOSDsHaveDoesNotHoldAPurgeThatGoesOnWithoutItsPerson(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(20 * time.Hour)
		s.ceph.SetDegraded(true, 3, 12, 107)
		s.ceph.Outage(false)
		r.End()
		s.wantTraces()
		if s.Count("warned "+purge.OSDSafeToDestroy+": Ceph does not report it as safe: ") != 1 {
			t.Errorf("that Ceph does not call it safe is not recorded once: %q", s.Story())
		}
	})
}

func TestALossThatCephTakesBackHoldsNothingAnyMore(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.answersLater(journal.ActionRequested{Manual: true})
		s.wantTraces(lostData...)
		s.ceph.SetOnlyCopy(false, 3, 12, 107)
		r.End()
		s.wantTraces()
	})
}

func TestAForcedPurgeThatGoesOnLaterRecordsTheLoss(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.answersLater(journal.ActionRequested{Manual: true, Force: true}).End()
		s.wantTraces()
		if s.Count(lossWarned) != 1 || !strings.Contains(strings.Join(s.Story(), "\n"), "(--force)") {
			t.Errorf("the loss is not recorded once: %q", s.Story())
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
						s.ceph.SetOnlyCopy(true, 12)
					}
				}
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(5 * time.Hour)
				r.Halt()
				s.wantTraces(test.left...)
				if told := s.Count(lossWarned) == 1; told != (test.left == nil) {
					t.Errorf("the loss was told: %v; %q", told, s.Story())
				}
			})
		})
	}
}

func TestALossThatWasAnsweredDoesNotHoldThePurgeAfterARestart(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.SetOnlyCopy(true, 12)
		r := s.outageBeforeOut()
		if s.Count(lossWarned) != 1 {
			t.Errorf("the loss is not recorded: %q", s.Story())
		}
		r.Halt()
		s.ceph.Outage(false)
		s.RunToEnd(s.cfg())
		s.wantTraces()
	})
}

// Versions before keys recorded the words alone. They are no answer to a loss, however
// alike the words are.
func TestAnAnswerOfAVersionBeforeKeysIsNoneToALoss(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.answersLater(journal.ActionRequested{Manual: true})
		hold := s.Record().Holds["purge-osd 3"]
		if hold.Key == "" {
			t.Fatalf("the hold of a loss has no key: %+v", hold)
		}
		keyed := hold
		hold.Key = ""
		s.answer(hold)
		s.Tell(r, journal.TypeActionWarned)
		s.Pass(time.Hour)
		s.wantTraces(lostData...)
		s.answer(keyed)
		s.Tell(r, journal.TypeActionWarned)
		r.End()
		s.wantTraces()
	})
}
