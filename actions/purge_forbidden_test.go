package actions_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
	"github.com/replicatedhq/ekco/journal"
)

// readsOfRook are what Rook's Role grants, and what an EKCO without it lacks.
var readsOfRook = []string{rooksim.GetCephClusters, rooksim.ListDeployments}

func TestAnAutomaticPurgeWaitsWhileRookMayNotBeSeen(t *testing.T) {
	for _, verb := range readsOfRook {
		t.Run(verb, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.rook.Forbid(verb)
				s.ask(journal.ActionRequested{})
				r := s.start(s.cfg())
				letPass(5 * time.Hour)
				hold := s.record().Holds[""]
				if hold.Preflight != actions.HoldPlan || !strings.Contains(hold.Reason, verb) {
					t.Errorf("the hold does not say what is missing: %+v", hold)
				}
				s.rook.Allow(verb)
				s.wantAll()
				r.end()
				s.wantTraces()
			})
		})
	}
}

func TestAManualPurgeGoesOnWhileRookMayNotBeSeenAndDropsNothing(t *testing.T) {
	for name, forbidden := range map[string][]string{
		"no permission at all": readsOfRook, "no CephClusters": readsOfRook[:1], "no Deployments": readsOfRook[1:],
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.rook.Forbid(forbidden...)
				s.ask(journal.ActionRequested{Manual: true})
				for range 2 {
					r := s.start(s.cfg())
					letPass(24*time.Hour - time.Minute)
					r.halt()
				}
				if hold, deferred := s.record().Deferred(); !deferred || !strings.Contains(hold.Reason, forbidden[0]) {
					t.Errorf("not deferred for a named permission: %+v", hold)
				}
				if s.count("warned CephHealthy: cannot tell whether Ceph is healthy: ") != 1 {
					t.Errorf("nobody is warned: %q", s.story())
				}
				s.rook.Allow(forbidden...)
				if got := s.traces(); slices.Contains(got, "node") || !slices.Contains(got, "storage entry") || len(s.deployments()) != 3 {
					t.Errorf("left of the node are %q", got)
				}
				s.runToEnd(s.cfg())
				s.wantTraces()
				s.wantOthers()
			})
		})
	}
}

func TestAPurgeThatCouldNotSeeRookEndsWhenThereIsNone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.Forbid(readsOfRook...)
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.rook.Allow(readsOfRook...)
		s.rook.SetInstallation(rook.Installation{})
		r.end()
		if got := s.lastLine(); got != "ended done" {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestAPurgeThatCouldNotSeeRookLeavesAReplacementItsOSDs(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.Forbid(readsOfRook...)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.replaced()
		s.rook.Allow(readsOfRook...)
		r.end()
		if !slices.Contains(s.rook.Nodes(), "w1") || len(s.deployments()) != 3 {
			t.Errorf("left are %q, listed %v", s.traces(), s.rook.Nodes())
		}
		for _, ref := range s.refs {
			if _, ok := s.ceph.Snapshot().OSD(ref.ID); !ok {
				t.Errorf("osd.%d of the replacement was purged", ref.ID)
			}
		}
	})
}

func TestALiveNodeWhoseRookCouldNotBeSeenIsUnlistedBeforeItsOSDsGo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.cluster.ReturnNode("w1")
		s.rook.Forbid(readsOfRook...)
		s.ask(journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
		r := s.start(s.cfg())
		letPass(time.Hour)
		s.rook.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "delete-deployment") && slices.Contains(s.rook.Nodes(), "w1") {
				t.Errorf("%s while the node is listed", effect)
			}
		}
		s.rook.Allow(readsOfRook...)
		r.end()
		s.wantTraces()
	})
}
