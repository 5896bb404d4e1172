package purge_test

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
				r := s.Start(s.cfg())
				s.Pass(5 * time.Hour)
				hold := s.Record().Holds[""]
				if hold.Preflight != actions.HoldPlan || !strings.Contains(hold.Reason, verb) {
					t.Errorf("the hold does not say what is missing: %+v", hold)
				}
				s.rook.Allow(verb)
				s.wantAll()
				r.End()
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
					r := s.Start(s.cfg())
					s.Pass(3 * time.Hour)
					r.Halt()
				}
				if hold, deferred := s.Record().Deferred(); !deferred || !strings.Contains(hold.Reason, forbidden[0]) {
					t.Errorf("not deferred for a named permission: %+v", hold)
				}
				if s.Count("warned CephHealthy: cannot tell whether Ceph is healthy: ") != 1 {
					t.Errorf("nobody is warned: %q", s.Story())
				}
				s.rook.Allow(forbidden...)
				if got := s.traces(); slices.Contains(got, "node") || !slices.Contains(got, "storage entry") || len(s.deployments()) != 3 {
					t.Errorf("left of the node are %q", got)
				}
				s.RunToEnd(s.cfg())
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
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.rook.Allow(readsOfRook...)
		s.rook.SetInstallation(rook.Installation{})
		r.End()
		if got := s.LastLine(); got != "ended done" {
			t.Errorf("the purge %s", got)
		}
	})
}

func TestAPurgeThatCouldNotSeeRookLeavesAReplacementItsOSDs(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.rook.Forbid(readsOfRook...)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.replaced()
		s.rook.Allow(readsOfRook...)
		r.End()
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
		s.Cluster.ReturnNode("w1")
		s.rook.Forbid(readsOfRook...)
		s.ask(journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.rook.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "delete-deployment") && slices.Contains(s.rook.Nodes(), "w1") {
				t.Errorf("%s while the node is listed", effect)
			}
		}
		s.rook.Allow(readsOfRook...)
		r.End()
		s.wantTraces()
	})
}
