package purge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

func warns(checks ...ceph.Check) ceph.Health {
	return ceph.Health{Status: ceph.HealthWarn, Checks: checks}
}

func check(code, message string) ceph.Check {
	return ceph.Check{Code: code, Severity: ceph.HealthWarn, Message: message}
}

var lostOSDs = check("OSD_DOWN", "3 osds down")

// troubles are what makes CephHealthy or OSDSafeToDestroy doubt, and how it
// ends.
func troubles() map[string]struct {
	preflight, reason string
	set               func(s *whole, on bool)
} {
	return map[string]struct {
		preflight, reason string
		set               func(s *whole, on bool)
	}{
		"degraded data": {purge.CephHealthy, "PG_DEGRADED", func(s *whole, on bool) {
			s.ceph.SetHealth(health(on, lostOSDs, check("PG_DEGRADED", "5 pgs degraded")))
		}},
		"OSDs down elsewhere": {purge.CephHealthy, "osd.20", func(s *whole, on bool) {
			s.ceph.SetHealth(health(on, lostOSDs))
			if on {
				s.ceph.LoseHost("p2")
			} else {
				s.ceph.ReturnHost("p2")
			}
		}},
		"data on the lost OSDs alone": {purge.OSDSafeToDestroy, "data may be lost", func(s *whole, on bool) {
			s.ceph.SetOnlyCopy(on, 12)
		}},
	}
}

func health(troubled bool, checks ...ceph.Check) ceph.Health {
	if troubled {
		return warns(checks...)
	}
	return warns(lostOSDs)
}

func TestQ27AnAutomaticPurgeWaitsUntilCephIsFine(t *testing.T) {
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				trouble.set(s, true)
				s.ask(journal.ActionRequested{})
				r := s.Start(s.cfg())
				s.Pass(3 * time.Hour)
				s.wantTraces(lostData...)
				if hold := s.Record().Holds["purge-osd 3"]; hold.Preflight != trouble.preflight || !strings.Contains(hold.Reason, trouble.reason) {
					t.Errorf("held by %+v", hold)
				}
				trouble.set(s, false)
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestQ27AManualPurgeGoesOnWithARecordedWarning(t *testing.T) {
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				trouble.set(s, true)
				s.ask(journal.ActionRequested{Manual: true})
				s.RunToEnd(s.cfg())
				s.wantTraces()
				first := func(verb string) int {
					return slices.IndexFunc(s.Story(), func(line string) bool { return strings.HasPrefix(line, verb) })
				}
				if first("warned ") > first("started ") {
					t.Errorf("the warning is not before everything else: %q", s.Story())
				}
				if s.Count("warned "+trouble.preflight) != 1 || !strings.Contains(strings.Join(s.Story(), "\n"), trouble.reason) {
					t.Errorf("no record of the warning: %q", s.Story())
				}
			})
		})
	}
}

func TestAnAutomaticPurgeChecksCephAgainBeforeOSDsAreDestroyed(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-out") {
				s.ceph.SetOnlyCopy(true, 3)
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces("crush host [3 12 107]", "osd.3", "osd.12", "osd.107")
		s.ceph.SetOnlyCopy(false, 3)
		r.End()
		s.wantTraces()
	})
}

func TestWhatTheLossOfTheNodeExplainsAndHarmlessWarningsHoldNothing(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		muted := check("PG_DEGRADED", "muted")
		muted.Muted = true
		s.ceph.SetHealth(warns(lostOSDs, check("OSD_HOST_DOWN", "1 host down"), check("MON_DOWN", "1/3 mons down"),
			check("AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED", "insecure"), check("POOL_NO_REDUNDANCY", "size 1"), check("BLUESTORE_NO_PER_POOL_OMAP", "legacy"), muted))
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if s.Count("held") != 0 {
			t.Errorf("held: %q", s.Story())
		}
	})
}

var orphan = check(ceph.OSDOrphan, "1 osds exist in the crush map but not in the osdmap")

func TestAnOSDOfTheNodeThatSomebodyRemovedByHandHoldsNothing(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.RemoveOSD(12)
		s.ceph.SetHealth(warns(lostOSDs, orphan))
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if s.Count("held") != 0 {
			t.Errorf("held: %q", s.Story())
		}
	})
}

func TestAnOSDOfAnotherNodeThatSomebodyRemovedByHandHolds(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.RemoveOSD(20)
		s.ceph.SetHealth(warns(lostOSDs, orphan))
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		if hold := s.Record().Holds["purge-osd 3"]; hold.Preflight != purge.CephHealthy || !strings.Contains(hold.Reason, "osd.20 of other nodes with ceph osd crush rm") {
			t.Errorf("held by %+v", hold)
		}
		r.Halt()
	})
}

func TestATroubleThatIsNotKnownHolds(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		broken := ceph.Check{Code: "BROKEN", Severity: ceph.HealthErr, Message: "broken"}
		s.ceph.SetHealth(warns(check("NEW_IN_CEPH_25", "something"), check("PG_DAMAGED", "damaged"), broken))
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces(lostData...)
		reason := s.Record().Holds["purge-osd 3"].Reason
		for code, mutes := range map[string]bool{"NEW_IN_CEPH_25": true, "PG_DAMAGED": false, "BROKEN": false} {
			if !strings.Contains(reason, code) || strings.Contains(reason, "ceph health mute "+code) != mutes {
				t.Errorf("that %s may be muted is to be %v: %s", code, mutes, reason)
			}
		}
		r.Halt()
	})
}

// TestAHealthHoldNeedsAPersonUnlessCephRecovers: a recovery may take days, and needs nobody.
func TestAHealthHoldNeedsAPersonUnlessCephRecovers(t *testing.T) {
	for codes, person := range map[string]bool{
		"SLOW_OPS": true, "PG_DEGRADED": false, "PG_DEGRADED OSDMAP_FLAGS": true, "PG_DEGRADED PG_BACKFILL_FULL": true,
	} {
		t.Run(codes, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				checks := []ceph.Check{lostOSDs}
				for _, code := range strings.Fields(codes) {
					checks = append(checks, check(code, "something is wrong"))
				}
				s.ceph.SetHealth(warns(checks...))
				s.ask(journal.ActionRequested{})
				r := s.Start(s.cfg())
				s.Pass(10 * time.Minute)
				hold := s.Record().Holds["purge-osd 3"]
				if hold.Preflight != purge.CephHealthy || (hold.NeedsPersonAfter > 0) != person || hold.NeedsPersonAfter > journal.Duration(time.Hour) {
					t.Errorf("held by %+v", hold)
				}
				s.ceph.SetHealth(health(false))
				r.End()
			})
		})
	}
}
