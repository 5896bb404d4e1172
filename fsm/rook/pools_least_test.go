package rook

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// TestTheLeastCopiesOfAPoolTakeNoHosts: what the configuration asks for at least is asked for on
// fewer hosts too, and is not taken back for want of them.
func TestTheLeastCopiesOfAPoolTakeNoHosts(t *testing.T) {
	w := newWorld(t, Policy{MinCopies: 2, MaxCopies: 3, Pools: configured})
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	one := says("16.2.15", 1, 1, cephPool("device_health_metrics", 1, 1))
	w.Observe(Machine, ceph, one)
	rec, change := w.wants(ceph, journal.ActionSetCephPools)
	if change.To() != "size of pool device_health_metrics 2" || change.Hosts != 0 {
		t.Errorf("asked for is %+v", change)
	}
	w.Observe(Machine, ceph, one)
	w.Decide()
	if rec := w.S.Actions[rec.ID]; rec == nil || rec.Cancelling != nil {
		t.Errorf("it does not go on: %+v", rec)
	}
}

func TestTheLeastCopiesOfAPoolTakeRoom(t *testing.T) {
	w := newWorld(t, Policy{MinCopies: 2, MaxCopies: 3, Pools: configured})
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	full := says("16.2.15", 1, 1, cephPool("device_health_metrics", 1, 1))
	full.Ceph.Checks = []string{"OSD_NEARFULL"}
	w.Observe(Machine, ceph, full)
	if rule, reason := w.refused(); rule != RuleCephRoom {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}
