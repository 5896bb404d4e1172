package purge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestD1AnOSDThatCephDoesNotPurgeIsTriedAgainAndNeverTakenForPurged(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused time.Duration
		stalls  bool
		prepare func(s *whole)
	}{
		{"for a moment", 10 * time.Second, false, func(*whole) {}},
		{"until it stalls", 24 * time.Hour, true, func(*whole) {}},
		{"found when Ceph answered", 24 * time.Hour, true, func(s *whole) {
			s.removeOSDs(3, 12, 107)
			s.ceph.Outage(true)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ceph.Refuse(true, "Purge")
				test.prepare(s)
				s.ask(journal.ActionRequested{Manual: true})
				r := s.Start(s.cfg())
				s.Pass(time.Second)
				s.ceph.Outage(false)
				s.Pass(test.refused)
				s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
				if s.Count("failed purge-") == 0 || s.Count("done purge-") != 0 || strings.HasPrefix(s.LastLine(), "ended") {
					t.Errorf("the OSDs are still there: %q", s.Story())
				}
				if s.Count("stalled purge-") > 0 != test.stalls {
					t.Errorf("stalled: %d times; %q", s.Count("stalled purge-"), s.Story())
				}
				s.ceph.Refuse(false, "Purge")
				if test.stalls {
					s.Retry(r)
				}
				r.End()
				s.wantTraces()
				s.wantOthers()
			})
		})
	}
}
