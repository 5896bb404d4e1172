package purge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

const stuckWarned = "warned " + purge.OSDSafeToDestroy + ": Ceph cannot recover by itself: "

// outThen runs f when the OSDs have been marked out.
func (s *whole) outThen(f func()) {
	s.ceph.AfterEffect = func(effect string) {
		if strings.HasPrefix(effect, "osd-out") {
			f()
		}
	}
}

func TestAnAutomaticPurgeOfOneOfThreeHostsWithThreeCopiesIsNotHeldForEver(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "with osd_purge_wait": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.wait = wait
				s.ceph.AddPool("replicapool", 3, 2)
				var mu sync.Mutex // two OSDs are purged side by side
				var out, purged time.Time
				s.ceph.AfterEffect = func(effect string) {
					mu.Lock()
					defer mu.Unlock()
					switch {
					case strings.HasPrefix(effect, "osd-out"):
						out = time.Now()
					case strings.HasPrefix(effect, "osd-purge"):
						purged = time.Now()
					}
				}
				s.ask(journal.ActionRequested{})
				s.Start(s.cfg()).End()
				s.wantTraces()
				s.wantOthers()
				if rest := purged.Sub(out); rest < max(wait, 30*time.Second) || rest > wait+2*time.Minute {
					t.Errorf("the OSDs were purged %s after they were out", rest)
				}
				if s.Count(stuckWarned+"pool replicapool needs 3 copies on different hosts; only 2 are left") != 1 {
					t.Errorf("why it went on is not recorded once: %q", s.Story())
				}
				if last := s.Story()[len(s.Story())-1]; last != "ended done" {
					t.Errorf("it says %q", last)
				}
			})
		})
	}
}

func TestAnAutomaticPurgeThatAnOlderEKCOHeldBeforeItsFirstStepGoesOnWhenCephIsStuck(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AddPool("replicapool", 3, 2)
		s.ask(journal.ActionRequested{})
		plan, _, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		plan.Steps[0].Preflights = append(plan.Steps[0].Preflights, purge.CephHealthy, purge.OSDSafeToDestroy)
		for i := range plan.Steps {
			plan.Steps[i].MayAlsoWaitFor = nil
		}
		s.Append("operator", journal.ActionPlanned{Plan: plan}, journal.TypeActionPlanned)
		s.RunToEnd(s.cfg())
		s.wantTraces()
	})
}

func TestWhatDoesNotTouchCephDoesNotWaitForItsHealth(t *testing.T) {
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				trouble.set(s, true)
				s.ask(journal.ActionRequested{})
				r := s.Start(s.cfg())
				s.Pass(5 * time.Second)
				s.wantTraces(lostData...)
				if s.ceph.Count("osd-out 3,12,107") != 1 {
					t.Errorf("the OSDs are not out: %q", s.Story())
				}
				s.Pass(3 * time.Hour)
				s.wantTraces(lostData...)
				hold, deferred := s.Record().Deferred()
				if !deferred || hold.Preflight != trouble.preflight || !strings.Contains(hold.Reason, trouble.reason) {
					t.Errorf("deferred: %v, held by %+v", deferred, s.Record().Holds)
				}
				trouble.set(s, false)
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestAnAutomaticPurgeWaitsAsLongAsCephCanRecover(t *testing.T) {
	for name, test := range map[string]struct {
		set, recover func(s *whole)
		says         string
	}{
		"a host that comes and takes its place": {
			set: func(s *whole) {
				s.ceph.AddPool("replicapool", 3, 2)
				s.ceph.SetHealth(warns(lostOSDs))
				s.ceph.AddHost("p4", 40)
				s.ceph.LoseHost("p4")
			},
			recover: func(s *whole) { s.ceph.ReturnHost("p4") },
			says:    "osd.40 is down",
		},
		"fewer copies than min_size": {
			set:     func(s *whole) { s.ceph.AddPool("replicapool", 3, 3) },
			recover: func(s *whole) { s.ceph.AddHost("p4", 40) },
			says:    "only 2 are left; placement group 1.0 is undersized+degraded+peered on osd.20, osd.21",
		},
		"another trouble": {
			set: func(s *whole) {
				s.ceph.AddPool("replicapool", 3, 2)
				s.ceph.SetHealth(warns(check("OSD_NEARFULL", "1 nearfull osd(s)")))
			},
			recover: func(s *whole) { s.ceph.SetHealth(ceph.Health{Status: ceph.HealthOK}) },
			says:    "OSD_NEARFULL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				test.set(s)
				s.ask(journal.ActionRequested{})
				r := s.Start(s.cfg())
				s.Pass(3 * time.Hour)
				s.wantTraces(lostData...)
				if held := fmt.Sprint(s.Record().Holds); !strings.Contains(held, test.says) {
					t.Errorf("held by %s, which does not say %q", held, test.says)
				}
				test.recover(s)
				r.End()
				s.wantTraces()
			})
		})
	}
}

func TestACephThatIsStuckOnlyForAMomentIsNotTakenForStuck(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AddPool("replicapool", 3, 2)
		s.ceph.AddHost("p4", 40)
		s.ceph.LoseHost("p4")
		if err := s.ceph.Out(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		s.outThen(func() {
			time.AfterFunc(20*time.Second, func() { s.ceph.AddHost("p5", 50) })
		})
		s.ask(journal.ActionRequested{})
		s.RunToEnd(s.cfg())
		s.wantTraces()
		if s.Count(stuckWarned) != 0 {
			t.Errorf("it is called stuck though a host joined after 20 s: %q", s.Story())
		}
	})
}

func TestADiskThatMovesWhileCephRecoversIsSaidToBeMarkedOut(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.SetHealth(warns(check("PG_DEGRADED", "5 pgs degraded")))
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.rook.AddOSDOf(s.refs[1], "p2")
		s.Pass(time.Hour)
		s.ceph.SetHealth(ceph.Health{Status: ceph.HealthOK})
		r.End()
		if s.ceph.Count("osd-purge 12") != 0 || !strings.Contains(s.LastLine(), "ceph osd in 12") {
			t.Errorf("it ended: %s", s.LastLine())
		}
	})
}

func TestTheCrushHostWaitsForCephToo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-purge") {
				s.ceph.SetHealth(warns(check("PG_DEGRADED", "5 pgs degraded")))
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces("crush host []")
		if hold, deferred := s.Record().Deferred(); !deferred || hold.Step != "remove-crush-host" {
			t.Errorf("held by %+v", s.Record().Holds)
		}
		s.ceph.SetHealth(ceph.Health{Status: ceph.HealthOK})
		r.End()
		s.wantTraces()
	})
}

func TestAPurgeByHandWarnsOfACephThatIsStuckAndGoesOnAsItAlwaysDid(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AddPool("replicapool", 3, 2)
		s.ask(journal.ActionRequested{Manual: true})
		if took := s.Start(s.cfg()).End(); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		s.wantTraces()
		if s.Count("warned "+purge.CephHealthy) != 1 || s.Count("warned "+purge.OSDSafeToDestroy+": Ceph does not report it as safe") != 1 {
			t.Errorf("the warnings are %q", s.Story())
		}
	})
}

func TestACrushHostThatANewNodeOfTheNameHasIsKeptWhenItIsEmpty(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-purge") {
				s.ceph.SetHealth(warns(check("PG_DEGRADED", "5 pgs degraded")))
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.wantTraces("crush host []")
		s.Cluster.AddNode("w1", journal.RoleWorker)
		s.ceph.SetHealth(ceph.Health{Status: ceph.HealthOK})
		r.End()
		if s.ceph.Count("crush-rm w1") != 0 {
			t.Errorf("the CRUSH host of the new node was removed; %q", s.Story())
		}
	})
}

// Ceph says nothing of its health as long as the mgr has not heard of it.
func TestAnAutomaticPurgeWaitsForOSDsThatAreNotSafeThoughCephIsCalledHealthy(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.AfterEffect = func(effect string) {
			if strings.HasPrefix(effect, "osd-out") {
				s.ceph.SetDegraded(true, 12)
				s.ceph.SetHealth(ceph.Health{Status: ceph.HealthOK})
			}
		}
		s.ask(journal.ActionRequested{})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		if s.ceph.Count("osd-purge 12") != 0 {
			t.Errorf("osd.12 is purged though Ceph does not call it safe; %q", s.Story())
		}
		s.ceph.SetDegraded(false, 12)
		r.End()
		s.wantTraces()
	})
}
