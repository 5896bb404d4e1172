package purge_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// heldOnceFound runs a purge by hand that could not read Rook until it has found the
// node's OSDs, and waits, before their Deployments are removed, for policy.
func (s *whole) heldOnceFound(meanwhile func()) (*actionstest.Running, *actionstest.SettablePreflight) {
	policy, cfg := actionstest.NewPreflight(actions.Pass()), s.cfg()
	cfg.Preflights["OneAtATime"] = policy
	s.rook.Forbid(readsOfRook...)
	s.ask(journal.ActionRequested{Manual: true})
	r := s.Start(cfg)
	s.Pass(time.Hour)
	policy.SetVerdict(actions.Hold("another purge comes first"))
	meanwhile()
	s.rook.Allow(readsOfRook...)
	s.Pass(time.Hour)
	if s.Count("done find-osds") != 1 || s.Count("started remove-found") != 0 {
		s.T.Fatalf("it does not wait behind find-osds: %q", s.Story())
	}
	return r, policy
}

func TestADeploymentThatWasBoundToAnotherMachineAfterItWasFoundIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r, policy := s.heldOnceFound(func() {})
		s.rook.BindOSD(12, "p9")
		policy.SetVerdict(actions.Pass())
		r.End()
		if on := s.deploymentsOn("p9"); len(on) != 1 {
			t.Errorf("on p9 are %q; %q", on, s.Story())
		}
		s.wantLeft(true)
		s.wantMovedDeployment()
	})
}

func TestWhatWasAReplacementsAsRookCouldBeReadIsNotTheLostNodesOnceThatIsGoneToo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r, policy := s.heldOnceFound(s.replaced)
		r.Halt()
		s.Cluster.RemoveNode("w1") // by hand, which is nobody's word about its disks
		policy.SetVerdict(actions.Pass())
		r = s.Start(s.cfg())
		s.Pass(time.Hour)
		r.Halt() // its CRUSH host is not empty
		if on := s.deployments(); len(on) != 3 || !slices.Contains(s.rook.Nodes(), "w1") {
			t.Errorf("left of the replacement are %q; %q", s.traces(), s.Story())
		}
	})
}

func TestAnOSDThatWasOnAnotherMachineAsTheOthersWereFoundIsNotAmongThem(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r, policy := s.heldOnceFound(func() { s.ceph.MoveOSD(12, "p9") })
		r.Halt()
		// While no EKCO looks, every trace of the other machine goes.
		s.ceph.MoveOSD(12, "w1")
		s.ceph.LoseHost("w1")
		policy.SetVerdict(actions.Pass())
		r = s.Start(s.cfg())
		s.Pass(time.Hour)
		r.Halt() // its CRUSH host is not empty
		s.wantLeft(true)
	})
}

// waits are the points at which a purge by hand waits for a mgr before it has done
// anything to osd.12 that cannot be undone.
var waits = map[string]struct {
	until func(s *whole) *actionstest.Running
	in    bool
}{
	"before OSDs are marked out": {func(s *whole) *actionstest.Running {
		s.rook.BeforeEffect = func(string) { s.ceph.LoseMgr(true) }
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		return r
	}, true},
	"before captured OSDs are purged": {(*whole).waitsForMgr, false},
	"before found OSDs are purged": {func(s *whole) *actionstest.Running {
		s.removeOSDs(3, 12, 107)
		s.ceph.Outage(true)
		time.AfterFunc(time.Minute, func() { s.ceph.Outage(false) })
		return s.waitsForMgr()
	}, false},
}

func TestADiskThatWasSeenOnAnotherMachineIsLeftAloneForGoodWhereverThePurgeWaits(t *testing.T) {
	for when, wait := range waits {
		t.Run(when, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				r := wait.until(s)
				s.rook.AddOSDOf(s.ref(12), "p9")
				s.Pass(time.Hour)
				r.Halt()
				// While no EKCO looks, every trace of the other machine goes.
				s.removeOSDs(12)
				s.ceph.LoseMgr(false)
				s.RunToEnd(s.cfg())
				s.wantLeft(wait.in)
				s.wantSaid()
			})
		})
	}
}

func TestTheDeploymentOfAnOSDThatIsLeftAloneForGoodIsLeftToo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.waitsForMgr()
		s.rook.AddOSDOf(s.ref(12), "p9")
		s.Pass(time.Hour)
		s.rook.BindOSD(12, "w1")
		s.ceph.LoseMgr(false)
		r.End()
		s.wantLeft(false)
		if on := s.deployments(); len(on) != 1 {
			t.Errorf("on w1 are %q; %q", on, s.Story())
		}
	})
}

func TestOneStepAlonePurgesAnOSD(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.removeOSDs(107)
		s.ceph.Outage(true)
		s.ask(journal.ActionRequested{Manual: true})
		r := s.Start(s.cfg())
		s.Pass(time.Hour)
		s.ceph.SetLatency(time.Second) // so that steps look side by side
		s.ceph.Outage(false)
		r.End()
		s.wantTraces()
		if got := s.ceph.Calls("Purge"); got != len(s.refs) {
			t.Errorf("Ceph was told %d times to purge %d OSDs; %q", got, len(s.refs), s.Story())
		}
	})
}

// planFacts plans the purge that was asked for, with these facts and a gate that asks
// for neither Ceph nor quorum, as in plans of older versions.
func (s *whole) planFacts(facts string) {
	s.T.Helper()
	plan, _, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
	if err != nil {
		s.T.Fatal(err)
	}
	plan.Facts = json.RawMessage(facts)
	for i := range plan.Steps {
		if plan.Steps[i].Preflights = without(plan.Steps[i].Preflights, purge.EtcdQuorumKept); plan.Steps[i].ID == "check" {
			plan.Steps[i].Preflights = nodestest.Rules(journal.ActionPurgeNode)
		}
	}
	s.Append("operator", journal.ActionPlanned{Plan: plan}, journal.TypeActionPlanned)
}

func TestAPurgeWhoseFactsCannotBeReadTouchesNothingAndTakesNothingForDone(t *testing.T) {
	for name, request := range asking {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.ask(request)
				s.planFacts(`"of another version"`)
				r := s.Start(s.cfg())
				s.Pass(5 * time.Hour)
				s.wantAll()
				if done := s.Count("done") - s.Count("done check"); done != 0 {
					t.Errorf("%d steps are done: %q", done, s.Story())
				}
				if hold := s.Record().Holds["delete-node"]; hold.Preflight != purge.EtcdQuorumKept {
					t.Errorf("held by %+v; %q", s.Record().Holds, s.Story())
				}
				r.Halt()
			})
		})
	}
}

func TestAPersonIsToldAtOnceThatNobodyCanSayWithoutAMgrWhetherOSDsAreSafe(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.LoseMgr(true)
		s.ask(journal.ActionRequested{Manual: true})
		began := time.Now()
		_, checks, err := actions.NewRunner(s.cfg()).Explain(t.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("that took %s", took)
		}
		at := slices.IndexFunc(checks, func(c actions.Check) bool { return c.Preflight == purge.OSDSafeToDestroy })
		if at < 0 || checks[at].Verdict.Kind != actions.VerdictWarn || !strings.Contains(checks[at].Verdict.Reason, "no active mgr") {
			t.Errorf("a person is told %+v", checks)
		}
	})
}

func TestNoOSDIsTouchedWhileNobodyCanSayWhoHasTheHostname(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r := s.waitsForMgr()
		s.Cluster.Forbid(kubesim.ListNodes)
		s.replaced()
		for _, ref := range s.refs {
			s.rook.AddOSDOf(ref, "w1")
		}
		s.ceph.LoseMgr(false)
		s.Pass(time.Hour)
		s.wantOSDs(s.refs)
		s.Cluster.Allow(kubesim.ListNodes)
		s.Retry(r)
		r.End()
		s.wantOSDs(s.refs)
	})
}

// wantOSDs checks that Ceph still has these OSDs.
func (s *whole) wantOSDs(refs []ceph.Ref) {
	s.T.Helper()
	for _, ref := range refs {
		if osd, ok := s.ceph.Snapshot().OSD(ref.ID); !ok || osd.UUID != ref.UUID {
			s.T.Errorf("osd.%d is %+v; %q", ref.ID, osd, s.Story())
		}
	}
}
