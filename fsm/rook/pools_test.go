package rook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

var store = journal.RookPools(journal.KindCephObjectStore, "rook-ceph-store")

// withStore are the limits with an object store.
var withStore = Policy{MinCopies: 1, MaxCopies: 3, Pools: append(slices.Clone(configured), store)}

// says is what Ceph says with so many hosts that serve, and so many that have OSDs.
func says(version string, serving, having int, pools ...journal.CephPool) journal.RookFacts {
	facts := journal.RookFacts{Ceph: &journal.CephFacts{Version: version, Pools: pools}}
	for i := range having {
		if name := fmt.Sprintf("h%d", i); i < serving {
			facts.Hosts, facts.Ceph.Occupied = append(facts.Hosts, name), append(facts.Ceph.Occupied, name)
		} else {
			facts.Ceph.Occupied = append(facts.Ceph.Occupied, name)
		}
	}
	return facts
}

func cephPool(name string, size, minSize int) journal.CephPool {
	return journal.CephPool{Name: name, Size: size, MinSize: minSize}
}

func TestNumbersOfPoolsFollowTheHostsAndTheVersions(t *testing.T) {
	const old, quincy = "16.2.15 pacific", "17.2.3 quincy"
	index := journal.CephPool{Name: "rook-ceph-store.rgw.buckets.index", Size: 1, MinSize: 1, PGs: journal.PoolPGMin}
	few, done, data := index, index, index
	few.PGs, done.PGMin, data.Name = journal.PoolPGMin-1, 32, "rook-ceph-store.rgw.buckets.data"
	var recorded journal.CephPool // by an earlier version
	if err := json.Unmarshal([]byte(`{"name":"rook-ceph-store.rgw.buckets.index","size":1,"min_size":1,"enough_groups":true}`), &recorded); err != nil {
		t.Fatal(err)
	}
	bound := cephPool(".mgr", 3, 2)
	bound.Bound = true
	for name, test := range map[string]struct {
		rook  string
		facts journal.RookFacts
		want  string
	}{
		"one host":                   {"v1.10.0", says(old, 1, 1, cephPool("device_health_metrics", 3, 2)), "min_size of pool device_health_metrics 1, size of pool device_health_metrics 1"},
		"two hosts":                  {"v1.10.0", says(old, 2, 2, cephPool("device_health_metrics", 1, 1)), "size of pool device_health_metrics 2"},
		"two hosts, served with two": {"v1.10.0", says(old, 2, 2, cephPool("device_health_metrics", 2, 2)), "min_size of pool device_health_metrics 1"},
		"three hosts":                {"v1.10.0", says(old, 3, 3, cephPool("device_health_metrics", 2, 1)), "min_size of pool device_health_metrics 2, size of pool device_health_metrics 3"},
		"as it should be":            {"v1.10.0", says(old, 3, 3, cephPool("device_health_metrics", 3, 2)), ""},
		"a host that is down":        {"v1.10.0", says(old, 2, 3, cephPool("device_health_metrics", 3, 2)), ""},
		"a host that is down, more copies than hosts": {"v1.10.0", says(old, 1, 2, cephPool("device_health_metrics", 3, 2)), "min_size of pool device_health_metrics 1, size of pool device_health_metrics 2"},
		"two hosts down":                 {"v1.10.0", says(old, 1, 3, cephPool("device_health_metrics", 3, 1)), ""},
		"no host":                        {"v1.10.0", says(old, 0, 3, cephPool("device_health_metrics", 3, 1)), ""},
		"another pool":                   {"v1.10.0", says(old, 3, 3, cephPool("mine", 1, 1)), ""},
		"the new name before Ceph 17":    {"v1.10.0", says(old, 3, 3, cephPool(".mgr", 1, 1)), ""},
		"the new name from Ceph 17 on":   {"v1.10.0", says(quincy, 3, 3, cephPool(".mgr", 1, 1)), "size of pool .mgr 2"},
		"the old name from Ceph 17 on":   {"v1.10.0", says(quincy, 3, 3, cephPool("device_health_metrics", 1, 1)), ""},
		"copies that are bound":          {"v1.10.0", says(quincy, 1, 1, bound), ""},
		"another pool of Rook 1.3":       {"v1.3.11", says("15.2.9 octopus", 3, 3, cephPool("mine", 1, 1)), "size of pool mine 2"},
		"another pool of Rook 1.3, less": {"v1.3.11", says("15.2.9 octopus", 1, 1, cephPool("mine", 2, 1)), ""},
		"another pool of Rook 1.4":       {"v1.4.9", says("15.2.9 octopus", 3, 3, cephPool("mine", 1, 1)), ""},
		"metadata":                       {"v1.10.0", says(quincy, 1, 1, index), "pg_num_min of pool rook-ceph-store.rgw.buckets.index 8"},
		"metadata by a recorded verdict": {"v1.10.0", says(quincy, 1, 1, recorded), "pg_num_min of pool rook-ceph-store.rgw.buckets.index 8"},
		"metadata before Ceph 17":        {"v1.10.0", says(old, 1, 1, index), ""},
		"metadata in few groups":         {"v1.10.0", says(quincy, 1, 1, few), ""},
		"metadata in more":               {"v1.10.0", says(quincy, 1, 1, done), ""},
		"data":                           {"v1.10.0", says(quincy, 1, 1, data), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withStore)
			w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Storage = test.rook, nil }))
			w.Observe(Machine, ceph, test.facts)
			rec, change := w.asked(ceph, journal.ActionSetCephPools)
			if got := change.To(); got != test.want {
				t.Errorf("it should be %q, want %q", got, test.want)
			}
			if rec != nil && strings.Contains(test.want, " size of pool") && !strings.Contains(rec.Request.Reason, "have OSDs that are up and in") && !strings.Contains(rec.Request.Reason, "has OSDs") {
				t.Errorf("because %s", rec.Request.Reason)
			}
			raises := slices.ContainsFunc(slices.Collect(maps.Keys(change.Numbers)), func(place string) bool {
				return strings.HasSuffix(place, "/size") && change.Numbers[place].To > change.Numbers[place].From
			})
			if raises != (change.Hosts > 0) {
				t.Errorf("it takes %d hosts", change.Hosts)
			}
		})
	}
}

func TestPoolsAreSetOneAfterTheOtherAndOnlyAfterALook(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Storage = "v1.3.11", nil }))
	one, two := cephPool("a", 1, 1), cephPool("b", 1, 1)
	w.Observe(Machine, ceph, says("15.2.9 octopus", 2, 2, one, two))
	rec, change := w.wants(ceph, journal.ActionSetCephPools)
	if change.To() != "size of pool a 2" || w.state(ceph) != Changing {
		t.Errorf("it should be %s, and is %s", change.To(), w.state(ceph))
	}
	w.End(rec, journal.OutcomeDone)
	if rec, _ := w.asked(ceph, journal.ActionSetCephPools); rec != nil {
		t.Error("before anybody has looked, something is set again")
	}
	w.Pass(fsm.RetryAfter) // nobody will
	rec, _ = w.wants(ceph, journal.ActionSetCephPools)
	w.End(rec, journal.OutcomeDone)
	one.Size = 2
	w.Observe(Machine, ceph, says("15.2.9 octopus", 2, 2, one, two))
	if _, change = w.wants(ceph, journal.ActionSetCephPools); change.To() != "size of pool b 2" {
		t.Errorf("it should be %s", change.To())
	}
}

func TestWhoSetsThePoolBackAgainAndAgainIsNotFought(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	for range 2 {
		w.Observe(Machine, ceph, says("16.2.15", 1, 1, cephPool("device_health_metrics", 3, 2)))
		rec, _ := w.wants(ceph, journal.ActionSetCephPools)
		w.Play(rec, "x", nil)
		w.End(rec, journal.OutcomeDone)
		w.Observe(Machine, ceph, says("16.2.15", 1, 1, cephPool("device_health_metrics", 1, 1)))
		w.Pass(time.Minute)
	}
	w.Observe(Machine, ceph, says("16.2.15", 1, 1, cephPool("device_health_metrics", 3, 2)))
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the numbers of Ceph's pool device_health_metrics") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

// TestTwoPoolsThatAreSetBackAgainAndAgainAreNotFoughtOver: each time EKCO sets one, and then the other.
func TestTwoPoolsThatAreSetBackAgainAndAgainAreNotFoughtOver(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Storage = "v1.3.11", nil }))
	looks := func(a, b int) {
		w.Pass(time.Minute)
		w.Observe(Machine, ceph, says("15.2.9 octopus", 2, 2, cephPool("a", a, 1), cephPool("b", b, 1)))
	}
	for range 2 {
		for _, sizes := range [][2]int{{1, 1}, {2, 1}} {
			looks(sizes[0], sizes[1])
			rec, _ := w.wants(ceph, journal.ActionSetCephPools)
			w.Play(rec, "x", nil)
			w.End(rec, journal.OutcomeDone)
		}
		looks(2, 2)
	}
	looks(1, 1)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the numbers of Ceph's pool a") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

func TestAPoolThatIsSetBackAgainAndAgainKeepsNoOtherWaiting(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Storage = "v1.3.11", nil }))
	looks := func(a, b int) {
		w.Pass(time.Minute)
		w.Observe(Machine, ceph, says("15.2.9 octopus", 2, 2, cephPool("a", a, 1), cephPool("b", b, 1)))
	}
	for range 2 {
		looks(1, 2)
		rec, _ := w.wants(ceph, journal.ActionSetCephPools)
		w.Play(rec, "x", nil)
		w.End(rec, journal.OutcomeDone)
		looks(2, 2)
	}
	looks(1, 1)
	rec, change := w.wants(ceph, journal.ActionSetCephPools)
	if change.To() != "size of pool b 2" {
		t.Errorf("it should be %s", change.To())
	}
	w.End(rec, journal.OutcomeDone)
	looks(1, 2)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the numbers of Ceph's pool a") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

// TestAPurgeDoesNotWaitForAPoolThatIsNotServed: Ceph says of no OSD of the lost host that it is
// safe to destroy while the mgr's pool has fewer copies than it is served with.
func TestAPurgeDoesNotWaitForAPoolThatIsNotServed(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	w.purge("a")
	w.Observe(Machine, ceph, says("16.2.15", 1, 2, cephPool("device_health_metrics", 2, 2)))
	rec, change := w.wants(ceph, journal.ActionSetCephPools)
	if change.To() != "min_size of pool device_health_metrics 1" {
		t.Errorf("asked for is %s", change.To())
	}
	w.Decide()
	if rec := w.S.Actions[rec.ID]; rec == nil || rec.Cancelling != nil {
		t.Errorf("it does not go on: %+v", rec)
	}
}

func TestNoPoolIsSetWhileANodeIsPurgedOrItIsSwitchedOff(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	purge := w.purge("a")
	w.Observe(Machine, ceph, says("16.2.15", 1, 1, cephPool("device_health_metrics", 3, 2)))
	w.quiet(ceph)
	w.End(purge, journal.OutcomeCancelled)
	w.wants(ceph, journal.ActionSetCephPools)

	w = newWorld(t, Policy{Off: "maintain_rook_storage_nodes is off"})
	w.cluster(asks(1))
	w.Observe(Machine, ceph, says("16.2.15", 1, 1, cephPool("device_health_metrics", 3, 2)))
	w.quiet(ceph)
}

// TestTheMgrsPoolIsLoweredNoSoonerThanOthers: not for a host that may return, nor at once; and what
// may wait comes last.
func TestTheMgrsPoolIsLoweredNoSoonerThanOthers(t *testing.T) {
	w := newWorld(t, limits, "a", "c")
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	mgr := []journal.CephPool{cephPool(journal.OldMgrPool, 3, 2)}
	w.crushOf(3, mgr, "a.local", "b.local", "c.local")
	w.quiet(ceph)
	w.crushOf(2, mgr, "a.local", "b.local") // c keeps its Node
	w.Pass(time.Hour)
	w.quiet(ceph)
	if rule, reason := w.refused(); rule != RuleHostMayReturn || !strings.Contains(reason, "host c.local has left") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf("c"), Payload: journal.NodeGone{}})
	w.crushOf(3, mgr, "a.local", "b.local", "c.local")
	w.crushOf(2, mgr, "a.local", "b.local")
	w.Pass(lowerDelay - time.Second)
	w.quiet(ceph)
	w.Pass(time.Second)
	w.sets("size of pool device_health_metrics 2")

	empty := says("16.2.15", 1, 1, cephPool(journal.OldMgrPool, 3, 2))
	empty.Ceph.Crush = []string{"h0", "without-osds"}
	w = newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	w.Observe(Machine, ceph, empty)
	if _, change := w.wants(ceph, journal.ActionSetCephPools); !strings.Contains(change.To(), " size of pool device_health_metrics 2") {
		t.Errorf("with a host without OSDs it should be %s", change.To())
	}

	onOSDs := cephPool(journal.OldMgrPool, 3, 2)
	onOSDs.OnOSDs = true
	w = newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	w.Observe(Machine, ceph, says("16.2.15", 2, 2, onOSDs))
	w.quiet(ceph)
}

func TestOfSeveralPoolsThoseThatAreLoweredComeLast(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Storage = "v1.3.11", nil }))
	w.Observe(Machine, ceph, says("15.2.9 octopus", 1, 2, cephPool(journal.OldMgrPool, 3, 2), cephPool("z", 2, 2)))
	w.sets("min_size of pool z 1")
}

// TestTheMostThatAreConfiguredLowerNoPoolForWhichThereAreHosts: that it may not be lowered then would
// be found before each try, every ten minutes.
func TestTheMostThatAreConfiguredLowerNoPoolForWhichThereAreHosts(t *testing.T) {
	w := newWorld(t, Policy{MinCopies: 1, MaxCopies: 2, Pools: configured})
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	w.Observe(Machine, ceph, says("16.2.15", 3, 3, cephPool(journal.OldMgrPool, 3, 2)))
	w.quiet(ceph)
	if state := w.state(ceph); state != InStep {
		t.Errorf("it is %s", state)
	}
	w.Observe(Machine, ceph, says("16.2.15", 3, 3, cephPool(journal.OldMgrPool, 5, 3)))
	w.sets("min_size of pool device_health_metrics 2, size of pool device_health_metrics 3")
}

func TestWithoutAHostNoPoolIsSet(t *testing.T) {
	w := newWorld(t, Policy{MinCopies: 2, MaxCopies: 3, Pools: configured})
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	w.Observe(Machine, ceph, says("16.2.15", 0, 1, cephPool(journal.OldMgrPool, 1, 1)))
	w.quiet(ceph)
}

// TestAPoolThatTakesNoRoomIsSetWithoutRoom, and a host that has left delays what is raised for
// nobody.
func TestAPoolThatTakesNoRoomIsSetWithoutRoom(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	full := says("16.2.15", 2, 2, cephPool(journal.OldMgrPool, 2, 2))
	full.Ceph.Checks = []string{"OSD_NEARFULL"}
	w.Observe(Machine, ceph, full)
	w.sets("min_size of pool device_health_metrics 1")

	w = newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	pools := []journal.CephPool{cephPool(journal.OldMgrPool, 1, 1)}
	w.crushOf(1, pools, "a", "b")
	w.crushOf(2, pools, "a", "c")
	w.sets("size of pool device_health_metrics 2")
}

// TestWhatIsOnlyShownIsShownOnce: not again whenever Ceph says something new.
func TestWhatIsOnlyShownIsShownOnce(t *testing.T) {
	w := behind(t)
	w.P.DryRun = true
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.End(rec, journal.OutcomeDryRun)
	w.hosts(3, warns("OSD_DOWN"))
	if rec, _ := w.asked(pool, journal.ActionRaiseCopies); rec != nil {
		t.Errorf("it is shown again: %+v", rec.Request)
	}
}
