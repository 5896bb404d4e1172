package purge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
)

// peering makes placement groups inactive for so long from the moment on at which
// the OSDs are marked out.
func (s *whole) peering(span time.Duration) {
	s.ceph.AfterEffect = func(effect string) {
		if strings.HasPrefix(effect, "osd-out") {
			s.ceph.SetOnlyCopy(true, 12)
			time.AfterFunc(span, func() { s.ceph.SetOnlyCopy(false, 12) })
		}
	}
}

func TestPlacementGroupsThatMerelyPeerAreNotCalledLostData(t *testing.T) {
	for name, manual := range map[string]bool{"by hand": true, "automatic": false} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.peering(6 * time.Second)
				s.ask(journal.ActionRequested{Manual: manual})
				took := s.Start(s.cfg()).End()
				s.wantTraces()
				if told := strings.Join(s.Story(), "\n"); strings.Contains(told, "data may be lost") || s.Count("held") == 0 {
					t.Errorf("what passed after 6 s is on record as %q", s.Story())
				}
				if took > 20*time.Second {
					t.Errorf("what passed after 6 s kept the purge for %s", took)
				}
			})
		})
	}
}

func TestALossIsToldOnceItHasLastedForHalfAMinute(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.peering(time.Hour)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(29 * time.Second)
		if hold := s.Record().Holds["purge-osd 3"]; hold.Preflight != purge.OSDSafeToDestroy || s.Count(lossWarned) != 0 {
			t.Errorf("after 29 s it is held by %+v; %q", hold, s.Story())
		}
		r.End()
		s.wantTraces()
		if s.Count(lossWarned) != 1 {
			t.Errorf("the loss is not told once: %q", s.Story())
		}
	})
}

func TestALossThatComesAndGoesIsOneOnlyIfItLasts(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{Manual: true})
		flap := func() {
			for range 10 {
				s.ceph.SetOnlyCopy(true, 12)
				<-time.After(12 * time.Second)
				s.ceph.SetOnlyCopy(false, 12)
				s.ceph.SetDegraded(true, 12)
				<-time.After(8 * time.Second)
			}
		}
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-out") {
				go flap()
			}
		}
		s.Start(s.cfg()).End()
		if s.Count(lossWarned) != 0 {
			t.Errorf("a loss that never lasted is on record: %q", s.Story())
		}
		s.Pass(time.Hour)
	})
}

func TestAPersonIsAskedAboutALossOnlyOnceItHasLasted(t *testing.T) {
	for name, test := range map[string]struct {
		passes time.Duration
		want   actions.VerdictKind
	}{"it passes": {6 * time.Second, actions.VerdictPass}, "it lasts": {time.Hour, actions.VerdictWarn}} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ceph.SetOnlyCopy(true, 12)
				time.AfterFunc(test.passes, func() { s.ceph.SetOnlyCopy(false, 12) })
				s.ask(journal.ActionRequested{Manual: true})
				began := time.Now()
				_, checks, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
				if err != nil {
					t.Fatal(err)
				}
				for _, check := range checks {
					if check.Preflight == purge.OSDSafeToDestroy && check.Verdict.Kind != test.want {
						t.Errorf("a person is told %+v", check.Verdict)
					}
				}
				if took := time.Since(began); took > 40*time.Second {
					t.Errorf("the answer took %s", took)
				}
				s.Pass(time.Hour)
			})
		})
	}
}

func TestWhatAPersonHasAnsweredIsNotLookedAtForHalfAMinuteAgain(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.SetOnlyCopy(true, 12)
		s.ask(journal.ActionRequested{Manual: true})
		_, checks, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if check.Preflight == purge.OSDSafeToDestroy {
				s.answer(journal.ActionHeld{Preflight: check.Preflight, Key: check.Verdict.Key, Reason: check.Verdict.Reason})
			}
		}
		if took := s.Start(s.cfg()).End(); took > 5*time.Second {
			t.Errorf("the answered purge took %s", took)
		}
		s.wantTraces()
	})
}
