package actions_test

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
			s.ceph.Hold(true, 12)
			time.AfterFunc(span, func() { s.ceph.Hold(false, 12) })
		}
	}
}

func TestPlacementGroupsThatMerelyPeerAreNotCalledLostData(t *testing.T) {
	for name, manual := range map[string]bool{"by hand": true, "automatic": false} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.peering(6 * time.Second)
				s.ask(journal.ActionRequested{Manual: manual})
				took := s.start(s.cfg()).end()
				s.wantTraces()
				if told := strings.Join(s.story(), "\n"); strings.Contains(told, "data may be lost") || s.count("held") == 0 {
					t.Errorf("what passed after 6 s is on record as %q", s.story())
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
		r := s.start(s.cfg())
		letPass(29 * time.Second)
		if hold := s.record().Holds["purge-osd 3"]; hold.Preflight != purge.OSDSafeToDestroy || s.count(lossWarned) != 0 {
			t.Errorf("after 29 s it is held by %+v; %q", hold, s.story())
		}
		r.end()
		s.wantTraces()
		if s.count(lossWarned) != 1 {
			t.Errorf("the loss is not told once: %q", s.story())
		}
	})
}

func TestALossThatComesAndGoesIsOneOnlyIfItLasts(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{Manual: true})
		flap := func() {
			for range 10 {
				s.ceph.Hold(true, 12)
				<-time.After(12 * time.Second)
				s.ceph.Hold(false, 12)
				s.ceph.Degrade(true, 12)
				<-time.After(8 * time.Second)
			}
		}
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-out") {
				go flap()
			}
		}
		s.start(s.cfg()).end()
		if s.count(lossWarned) != 0 {
			t.Errorf("a loss that never lasted is on record: %q", s.story())
		}
		letPass(time.Hour)
	})
}

func TestAPersonIsAskedAboutALossOnlyOnceItHasLasted(t *testing.T) {
	for name, test := range map[string]struct {
		passes time.Duration
		want   actions.VerdictKind
	}{"it passes": {6 * time.Second, actions.VerdictPass}, "it lasts": {time.Hour, actions.VerdictWarn}} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ceph.Hold(true, 12)
				time.AfterFunc(test.passes, func() { s.ceph.Hold(false, 12) })
				s.ask(journal.ActionRequested{Manual: true})
				began := time.Now()
				_, checks, err := actions.NewRunner(s.cfg()).Explain(s.t.Context(), s.record())
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
				letPass(time.Hour)
			})
		})
	}
}

func TestWhatAPersonHasAnsweredIsNotLookedAtForHalfAMinuteAgain(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Hold(true, 12)
		s.ask(journal.ActionRequested{Manual: true})
		_, checks, err := actions.NewRunner(s.cfg()).Explain(s.t.Context(), s.record())
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if check.Preflight == purge.OSDSafeToDestroy {
				s.answer(journal.ActionHeld{Preflight: check.Preflight, Key: check.Verdict.Key, Reason: check.Verdict.Reason})
			}
		}
		if took := s.start(s.cfg()).end(); took > 5*time.Second {
			t.Errorf("the answered purge took %s", took)
		}
		s.wantTraces()
	})
}

func TestWhatEKCOWentOnForOnceHasToLastAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cannot := "Ceph cannot recover by itself: no third host is left"
		waiting := step("a")
		waiting.Preflights = []string{"Stuck"}
		k := &script{steps: []journal.PlannedStep{waiting}}
		w.requestTest()
		w.append("operator", journal.ActionWarned{Preflight: "Stuck", Warning: cannot, Answer: journal.AnswerAutomatic}, journal.TypeActionWarned)
		stuck := always(actions.PassBecause(cannot).OnceLasting(30*time.Second, cannot))
		if took := w.start(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{"Stuck": stuck})).end(); took < 30*time.Second {
			t.Errorf("it went on after %s", took)
		}
	})
}
