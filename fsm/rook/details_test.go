package rook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// details are what is said of a thing to who looks closer.
func (w *world) details(of journal.Subject) []string {
	w.Decide()
	return w.S.Things[of.UID].Details(fsm.NewWorld(w.S, w.P, w.Now))
}

func (w *world) says(of journal.Subject, want ...string) {
	w.T.Helper()
	if got := w.details(of); !slices.Equal(got, want) {
		w.T.Errorf("of the %s is said %q, want %q", of.Kind, got, want)
	}
}

func TestTheDetailsSayWhatThereIsWhatShallBeAndWhatWaits(t *testing.T) {
	w := newWorld(t, limits, "a", "b", "c")
	w.cluster(asks(1, lists("a", "b", "c"), has(1, 2)))
	w.pools(pool, 1, map[string]int{poolSize: 2})
	w.hosts(3, keeps("device_health_metrics", 1), keeps("replicapool", 1), warns("OSD_NEARFULL"), occupies("a-local", "h0", "h1", "h2"))
	w.says(ceph, "hosts with OSDs that are up and in: h0, h1, h2", "hosts whose OSDs are all down or out: a-local", "Ceph 16.2.15 pacific",
		"it is HEALTH_WARN (OSD_NEARFULL)", "pool device_health_metrics keeps 1 copy and serves with 1, EKCO wants 3 copies", "pool replicapool keeps 1 copy and serves with 1",
		"waits: Ceph reports too little free space (OSD_NEARFULL), and more copies need more; EKCO continues when Ceph has space again: add disks, or delete data")
	w.says(pool, "replicated.size: Rook is asked for 2, Ceph keeps 1 copy of replicapool, EKCO wants 3",
		"waits: Ceph reports too little free space (OSD_NEARFULL), and more copies need more; EKCO continues when Ceph has space again: add disks, or delete data")
	w.says(cephCluster, "Rook v1.10.0", "storage on a.local, b.local, c.local",
		"listed, but without an OSD: b.local, c.local (Rook needs a free disk there, and some minutes)",
		"mgr.count: Rook is asked for 2", "mon.count: Rook is asked for 1, EKCO wants 3")
	w.P = fsm.Policy{} // nobody works on the journal
	if got := w.S.Things[pool.UID].Details(fsm.NewWorld(w.S, w.P, w.Now)); !slices.Equal(got, []string{"replicated.size: Rook is asked for 2, Ceph keeps 1 copy of replicapool"}) {
		t.Errorf("of the pool is said %q", got)
	}
}

func TestAHundredHostsFitOnALine(t *testing.T) {
	w := newWorld(t, limits)
	w.hosts(100)
	if line := w.details(ceph)[0]; !strings.HasSuffix(line, ", h19 and 80 more") {
		t.Errorf("it says %s", line)
	}
}

// TestWhatCephKeepsMoreOfThanRookWouldBeAskedForIsNotWanted: nothing is asked for, and so nothing
// waits either.
func TestWhatCephKeepsMoreOfThanRookWouldBeAskedForIsNotWanted(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(3, keeps("replicapool", 4))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.quiet(pool)
	if lines := w.details(pool); !slices.Equal(lines, []string{"replicated.size: Rook is asked for 1, Ceph keeps 4 copies of replicapool"}) {
		t.Errorf("it says %q", lines)
	}
	for _, want := range []float64{4, 3} {
		w.S.Things[ceph.UID].Measures(fsm.NewWorld(w.S, w.P, w.Now), func(m fsm.Measure) {
			if m.Name == "rook_pool_size_wanted" && m.Value != want {
				t.Errorf("wanted are %g, want %g", m.Value, want)
			}
		})
		w.pools(pool, 2, map[string]int{poolSize: 3}) // Rook takes one away
		w.Decide()
	}
}

func TestTheMeasuresAreThoseOfHostsPoolsAndHealth(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.pools(shared, 1, map[string]int{dataSize: 3, metadataSize: 1})
	w.hosts(2, keeps("device_health_metrics", 1), keeps("mine", 1), keeps("replicapool", 1), keeps("rook-shared-fs-data0", 2), warns("OSD_DOWN"))
	var got []string
	for _, of := range []journal.Subject{cephCluster, pool, shared, ceph} {
		w.S.Things[of.UID].Measures(fsm.NewWorld(w.S, w.P, w.Now), func(m fsm.Measure) {
			got = append(got, fmt.Sprintf("%s %s %s %g", m.Name, m.Label, m.Of, m.Value))
		})
	}
	want := []string{
		"rook_storage_hosts   2", "rook_ceph_health   1",
		"rook_pool_size_present pool device_health_metrics 1", "rook_pool_size_wanted pool device_health_metrics 2",
		"rook_pool_size_present pool mine 1",
		"rook_pool_size_present pool replicapool 1", "rook_pool_size_wanted pool replicapool 2",
		"rook_pool_size_present pool rook-shared-fs-data0 2", "rook_pool_size_wanted pool rook-shared-fs-data0 3", // somebody set it, and EKCO never lowers that
	}
	if !slices.Equal(got, want) {
		t.Errorf("measured are %q", got)
	}
}

func TestWhatAPurgeKeepsWaitingIsBehindAndSaysSo(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.cluster(asks(1, lists("a", "b"), has(1, 1)))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	purge := w.purge("b")
	w.hosts(2, keeps("device_health_metrics", 1), keeps("replicapool", 1))
	const waits = "waits: node b is being purged, and EKCO knows how many hosts remain only after that; EKCO continues when the purge has ended"
	for _, of := range []journal.Subject{pool, cephCluster, ceph} {
		w.quiet(of)
		if lines := w.details(of); w.state(of) != Behind || !slices.Contains(lines, waits) {
			t.Errorf("the %s is %s: %q", of.Kind, w.state(of), lines)
		}
	}
	w.pools(shared, 1, map[string]int{dataSize: 2, metadataSize: 2})
	if lines := w.details(shared); w.state(shared) != InStep || slices.Contains(lines, waits) {
		t.Errorf("of what waits for nothing is said %q, and it is %s", lines, w.state(shared))
	}
	w.End(purge, journal.OutcomeDone)
	w.Decide()
	if len(w.S.Refusals) > 0 {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
	w.wants(pool, journal.ActionRaiseCopies)
}
