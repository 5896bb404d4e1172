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
