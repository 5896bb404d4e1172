package actions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// heldOnceFound runs a purge by hand that could not read Rook until it has found the
// node's OSDs, and waits, before their Deployments are removed, for policy.
func (s *whole) heldOnceFound(meanwhile func()) (*running, *dial) {
	policy, cfg := answering(actions.Pass()), s.cfg()
	cfg.Preflights["OneAtATime"] = policy
	s.rook.Forbid(readsOfRook...)
	s.ask(journal.ActionRequested{Manual: true})
	r := s.start(cfg)
	letPass(time.Hour)
	policy.turn(actions.Hold("another purge comes first"))
	meanwhile()
	s.rook.Allow(readsOfRook...)
	letPass(time.Hour)
	if s.count("done find-osds") != 1 || s.count("started remove-found") != 0 {
		s.t.Fatalf("it does not wait behind find-osds: %q", s.story())
	}
	return r, policy
}

func TestADeploymentThatWasBoundToAnotherMachineAfterItWasFoundIsNotRemoved(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r, policy := s.heldOnceFound(func() {})
		s.rook.BindOSD(12, "p9")
		policy.turn(actions.Pass())
		r.end()
		if on := s.deploymentsOn("p9"); len(on) != 1 {
			t.Errorf("on p9 are %q; %q", on, s.story())
		}
		s.wantLeft(true)
		s.wantMovedDeployment()
	})
}

func TestWhatWasAReplacementsAsRookCouldBeReadIsNotTheLostNodesOnceThatIsGoneToo(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r, policy := s.heldOnceFound(s.replaced)
		r.halt()
		s.cluster.RemoveNode("w1") // by hand, which is nobody's word about its disks
		policy.turn(actions.Pass())
		r = s.start(s.cfg())
		letPass(time.Hour)
		r.halt() // its CRUSH host is not empty
		if on := s.deployments(); len(on) != 3 || !slices.Contains(s.rook.Nodes(), "w1") {
			t.Errorf("left of the replacement are %q; %q", s.traces(), s.story())
		}
	})
}

func TestAnOSDThatWasOnAnotherMachineAsTheOthersWereFoundIsNotAmongThem(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		r, policy := s.heldOnceFound(func() { s.ceph.MoveOSD(12, "p9") })
		r.halt()
		// While no EKCO looks, every trace of the other machine goes.
		s.ceph.MoveOSD(12, "w1")
		s.ceph.LoseHost("w1")
		policy.turn(actions.Pass())
		r = s.start(s.cfg())
		letPass(time.Hour)
		r.halt() // its CRUSH host is not empty
		s.wantLeft(true)
	})
}

// waits are the points at which a purge by hand waits for a mgr before it has done
// anything to osd.12 that cannot be undone.
var waits = map[string]struct {
	until func(s *whole) *running
	in    bool
}{
	"before OSDs are marked out": {func(s *whole) *running {
		s.rook.BeforeEffect = func(string) { s.ceph.LoseMgr(true) }
		s.ask(journal.ActionRequested{Manual: true})
		r := s.start(s.cfg())
		letPass(time.Hour)
		return r
	}, true},
	"before captured OSDs are purged": {(*whole).waitsForMgr, false},
	"before found OSDs are purged": {func(s *whole) *running {
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
				letPass(time.Hour)
				r.halt()
				// While no EKCO looks, every trace of the other machine goes.
				s.removeOSDs(12)
				s.ceph.LoseMgr(false)
				s.runToEnd(s.cfg())
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
		letPass(time.Hour)
		s.rook.BindOSD(12, "w1")
		s.ceph.LoseMgr(false)
		r.end()
		s.wantLeft(false)
		if on := s.deployments(); len(on) != 1 {
			t.Errorf("on w1 are %q; %q", on, s.story())
		}
	})
}
