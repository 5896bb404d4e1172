package purge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
)

func TestD1WhatNeedsCephStaysOpenForDaysAndIsFinishedWhenCephAnswers(t *testing.T) {
	for name, broken := range map[string]func(s *whole, down bool){
		"no tools pod": func(s *whole, down bool) { s.ceph.Outage(down) },
		"no quorum":    func(s *whole, down bool) { s.ceph.Hang(down) },
		"no mgr":       func(s *whole, down bool) { s.ceph.LoseMgr(down) },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				broken(s, true)
				s.ask(journal.ActionRequested{Manual: true})
				waits := 3 * time.Hour // longer than anything that a hold waits for
				if name == "no quorum" {
					waits = 24*time.Hour - time.Minute
				}
				for range 3 {
					r := s.Start(s.cfg())
					s.Pass(waits)
					r.Halt()
				}
				s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
				if hold, deferred := s.Record().Deferred(); !deferred || hold.Preflight != purge.CephAnswers {
					t.Errorf("not deferred: %q", s.Story())
				}
				broken(s, false)
				s.RunToEnd(s.cfg())
				s.wantTraces()
				s.wantOthers()
			})
		})
	}
}

func TestAnAutomaticPurgeDoesNotBeginWhileCephDoesNotAnswer(t *testing.T) {
	for name, broken := range map[string]func(s *whole, down bool){
		"when it is planned": func(s *whole, down bool) { s.ceph.Outage(down) },
		"without a mgr":      func(s *whole, down bool) { s.ceph.LoseMgr(down) },
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				broken(s, true)
				s.ask(journal.ActionRequested{})
				r := s.Start(s.cfg())
				s.Pass(5 * time.Hour)
				s.wantAll()
				if len(s.Record().Holds) != 1 {
					t.Errorf("no hold says why: %q", s.Story())
				}
				broken(s, false)
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestD4ACephThatHangsKeepsNothingElseWaiting(t *testing.T) {
	for step, hang := range map[string]func(s *whole, hanging bool){
		"out-osds":    func(s *whole, hanging bool) { s.ceph.Hang(hanging) },
		"purge-osd 3": func(s *whole, hanging bool) { s.ceph.LoseMgr(hanging) },
	} {
		t.Run(step, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ask(journal.ActionRequested{Manual: true})
				s.ceph.AfterEffect = func(effect string) {
					if strings.HasPrefix(effect, "osd-out") {
						hang(s, true)
					}
				}
				r := s.Start(s.cfg())
				s.Pass(5 * time.Second)
				s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
				s.Pass(3 * time.Hour)
				if hold, deferred := s.Record().Deferred(); !deferred || hold.Step != step {
					t.Errorf("it does not just wait for Ceph: %+v, %q", hold, s.Story())
				}
				r.Halt()
				hang(s, false)
				s.RunToEnd(s.cfg())
				s.wantTraces()
			})
		})
	}
}

func TestOSDsThatOnlyTheCrushTreeKnowsAreFoundWhenCephAnswers(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12, 107)
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.ceph.Outage(false)
		r.End()
		s.wantTraces()
		s.wantOthers()
	})
}

func TestAnOSDUnderTheHostThatRookRunsElsewhereIsNotFoundLater(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12)
		s.rook.AddOSD(12, "p2")
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.ceph.Outage(false)
		s.Pass(time.Hour)
		if osd, ok := s.ceph.Snapshot().OSD(12); !ok || !osd.In() {
			t.Errorf("an OSD of another node is %+v", osd)
		}
		r.Halt()
	})
}

func TestNoOSDIsPurgedBeforeItIsSeenThatTheyAreOut(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-out") && s.ceph.Count(effect) == 1 {
				s.ceph.Outage(true)
			}
			if strings.HasPrefix(effect, "osd-purge") && s.ceph.Count("osd-out 3,12,107") == 0 {
				t.Errorf("%s before the OSDs were out", effect)
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		if n := len(s.ceph.Snapshot().OSDs); n < 3 || s.ceph.Count("osd-purge 3") != 0 {
			t.Errorf("while Ceph does not answer %d OSDs are left", n)
		}
		s.ceph.Outage(false)
		r.End()
		s.wantTraces()
		if n := s.ceph.Count("osd-down 3,12,107"); n != 0 {
			t.Errorf("what is down was marked down %d times", n)
		}
	})
}

// TestWhatCameUpSinceThePreflightIsMarkedDownAndThenOut, and what is not marked down is not out.
func TestWhatCameUpSinceThePreflightIsMarkedDownAndThenOut(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.ReturnHost("w1")
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour) // it is held, and planned
		r.Halt()
		record := s.Record()
		planned, _ := record.Plan.Step("out-osds")
		step, code := actions.StepContext{Action: record, Planned: planned}, s.kinds(nil)[0].Steps["out-osds"]

		s.ceph.StopOSD(12)
		s.ceph.Refuse(true, "Down")
		if _, err := code.Do(t.Context(), step); err == nil || s.ceph.Count("osd-out 3,12,107") != 0 {
			t.Errorf("%v: Ceph was told %+v", err, s.ceph.Effects())
		}
		s.ceph.Refuse(false, "Down")
		if proof, err := code.Prove(t.Context(), step); err != nil || proof.Done {
			t.Errorf("%v: it is proved by %+v", err, proof)
		}
		if _, err := code.Do(t.Context(), step); err != nil || s.ceph.Count("osd-down 3,107") != 1 || s.ceph.Count("osd-out 3,12,107") != 1 {
			t.Errorf("%v: Ceph was told %+v", err, s.ceph.Effects())
		}
		if proof, err := code.Prove(t.Context(), step); err != nil || !proof.Done {
			t.Errorf("%v: it is not proved: %+v", err, proof)
		}
	})
}

func TestAPersonDoesNotWaitForACephThatHangsMoreThanOnce(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.Hang(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(25 * time.Second)
		if s.NodeExists() {
			t.Errorf("the Node still exists: %q", s.Story())
		}
		r.Halt()
	})
}

func TestAnOSDWithoutADeploymentThatRunsIsNotFoundLater(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(12)
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.ceph.ReturnHost("w1")
		s.ceph.Outage(false)
		s.Pass(time.Hour)
		if osd, ok := s.ceph.Snapshot().OSD(12); !ok || !osd.In() {
			t.Errorf("osd.12, which runs, is %+v", osd)
		}
		r.Halt()
	})
}
