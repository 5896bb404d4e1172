package purge_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

func TestAPurgeEndsWhenCephIsGoneForGoodWhereverItWaitsForIt(t *testing.T) {
	for name, test := range map[string]struct {
		manual bool
		begin  func(s *whole)
	}{
		"asked for while Ceph was away": {true, func(s *whole) { s.ceph.Outage(true) }},
		"before OSDs are marked out":    {true, func(s *whole) { s.rook.BeforeEffect = func(string) { s.ceph.Outage(true) } }},
		"automatic, before they are purged": {false, func(s *whole) {
			s.ceph.AfterEffect = func(string) { s.ceph.Outage(true) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				test.begin(s)
				s.ask(journal.ActionRequested{Manual: test.manual})
				r := s.Start(s.cfg())
				s.Pass(5 * time.Hour)
				s.rook.SetInstallation(rook.Installation{Why: "there is no CephCluster"})
				s.Pass(5 * time.Hour)
				if s.Record().Ended != nil {
					t.Fatalf("it ended though Ceph may come back: %q", s.Story())
				}
				s.rook.SetInstallation(rook.Installation{Gone: true})
				r.End()
				if got := s.LastLine(); got != "ended done" {
					t.Errorf("the purge %s", got)
				}
			})
		})
	}
}
