package rook

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestThereAreAsManyCopiesAsHostsWithinTheLimits(t *testing.T) {
	for _, test := range []struct {
		hosts, min, max, size, want, needs int
	}{
		{hosts: 1, min: 1, max: 3, size: 1},
		{hosts: 2, min: 1, max: 3, size: 1, want: 2, needs: 2},
		{hosts: 3, min: 1, max: 3, size: 1, want: 2, needs: 2},
		{hosts: 3, min: 1, max: 3, size: 2, want: 3, needs: 3},
		{hosts: 5, min: 1, max: 3, size: 2, want: 3, needs: 3},
		{hosts: 3, min: 1, max: 3, size: 3},
		{hosts: 2, min: 1, max: 3, size: 3}, // never lowered
		{hosts: 0, min: 1, max: 3, size: 2},
		{hosts: 0, min: 2, max: 3, size: 1, want: 2},
		{hosts: 1, min: 2, max: 3, size: 1, want: 2},
		{hosts: 3, min: 2, max: 3, size: 1, want: 2},
		{hosts: 3, min: 1, max: 2, size: 1, want: 2, needs: 2},
		{hosts: 500, min: 1, max: 3, size: 4},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			w := newWorld(t, Policy{MinCopies: test.min, MaxCopies: test.max, Pools: configured})
			w.cluster(asks(1, lists(), has(3, 2)))
			w.hosts(test.hosts)
			w.pools(pool, 1, map[string]int{poolSize: test.size})
			_, change := w.asked(pool, journal.ActionRaiseCopies)
			if got := change.Numbers[poolSize]; got.To != test.want || change.Hosts != test.needs {
				t.Errorf("asked for is %+v with %d hosts, want %d with %d", got, change.Hosts, test.want, test.needs)
			}
		})
	}
}

func TestEachPoolOfAResourceIsRaisedByItself(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(2)
	w.pools(shared, 1, map[string]int{metadataSize: 3, dataSize: 1})
	rec, change := w.wants(shared, journal.ActionRaiseCopies)
	if want := map[string]journal.RookNumber{dataSize: {From: 1, To: 2}}; !maps.Equal(change.Numbers, want) {
		t.Errorf("asked for is %+v", change)
	}
	if want := "2 hosts have OSDs that are up and in, so it should have 2 copies, and has dataPools.0.replicated.size 1"; rec.Request.Reason != want {
		t.Errorf("the reason is %q", rec.Request.Reason)
	}
	w.made(rec, journal.RookFacts{Generation: 2, Numbers: map[string]int{metadataSize: 3, dataSize: 2}}, journal.OutcomeDone)
	w.quiet(shared)
}

func TestWithoutKnowingTheHostsNothingIsRaised(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists()))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.quiet(pool)
	w.hosts(3)
	w.wants(pool, journal.ActionRaiseCopies)
}

func TestWithoutACephClusterNothingIsChangedAndNothingSaid(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.hosts(3)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.quiet(pool)
	w.cluster(asks(1))
	w.wants(pool, journal.ActionRaiseCopies)
	w.End(w.Open(pool), journal.OutcomeAbandoned)
	w.made(w.open(cephCluster, journal.ActionAddStorageNodes), asks(2, lists("a")), journal.OutcomeDone)
	w.made(w.open(cephCluster, journal.ActionAddCephDaemons), asks(3, lists("a"), has(3, 2)), journal.OutcomeDone)
	w.Gone(Machine, cephCluster, "deleted")
	w.Pass(time.Hour)
	w.quiet(pool)
	if state := w.state(cephCluster); state != Removed || len(w.S.Refusals) != 0 {
		t.Errorf("it is %s, refused is %+v", state, w.S.Refusals)
	}
}

// TestACephThatIsBeingRemovedOrRunsElsewhereIsLeftAlone: of its CephCluster nothing is known that
// EKCO might change, and then its pools are not EKCO's either.
func TestACephThatIsBeingRemovedOrRunsElsewhereIsLeftAlone(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(3, keeps(journal.OldMgrPool, 1))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.wants(pool, journal.ActionRaiseCopies)
	w.wants(ceph, journal.ActionSetCephPools)
	w.cluster(journal.RookFacts{Generation: 2, Version: "v1.10.0"})
	w.Decide()
	for _, of := range []journal.Subject{pool, ceph} {
		rec := w.Open(of)
		if rec.Cancelling == nil {
			t.Fatalf("%s %s goes on", rec.Kind, of.Name)
		}
		w.End(rec, journal.OutcomeCancelled)
	}
	w.Pass(time.Hour)
	w.quiet(pool)
	w.quiet(ceph)
	for _, of := range []journal.Subject{pool, ceph} {
		said := strings.Join(w.S.Things[of.UID].Details(fsm.NewWorld(w.S, w.P, w.Now)), "; ")
		if state := w.state(of); state != InStep || strings.Contains(said, "EKCO wants") {
			t.Errorf("%s is %s: %s", of.Name, state, said)
		}
	}
}

func TestANumberThatSomebodyElseSetEndsWhatHasNotBegun(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(2)
	for size, why := range map[int]string{2: "nothing is left to change", 3: "another client changed it: replicated.size is 3 now"} {
		w.pools(pool, 1, map[string]int{poolSize: 1})
		w.wants(pool, journal.ActionRaiseCopies)
		w.pools(pool, 2, map[string]int{poolSize: size})
		w.Decide()
		rec := w.Open(pool)
		if rec.Cancelling == nil || rec.Cancelling.Reason != why {
			t.Errorf("the action is %+v, want that %s", rec.Cancelling, why)
		}
		w.End(rec, journal.OutcomeCancelled)
	}
}

func TestMonitorsAndManagersAreAddedAndNeverTakenAway(t *testing.T) {
	for _, test := range []struct {
		hosts, mons, mgrs, wantMons, wantMgrs, needs int
	}{
		{hosts: 1, mons: 1, mgrs: 1},
		{hosts: 2, mons: 1, mgrs: 1, wantMgrs: 2, needs: 2},
		{hosts: 3, mons: 1, mgrs: 1, wantMons: 3, wantMgrs: 2, needs: 3},
		{hosts: 3, mons: 2, mgrs: 2, wantMons: 3, needs: 3},
		{hosts: 5, mons: 3, mgrs: 1, wantMgrs: 2, needs: 2},
		{hosts: 1, mons: 3, mgrs: 2},
		{hosts: 9, mons: 5, mgrs: 3},
	} {
		w := newWorld(t, limits)
		w.cluster(asks(1, lists(), has(test.mons, test.mgrs)))
		w.hosts(test.hosts)
		_, change := w.asked(cephCluster, journal.ActionAddCephDaemons)
		if change.Numbers[journal.RookMons].To != test.wantMons || change.Numbers[journal.RookMgrs].To != test.wantMgrs || change.Hosts != test.needs {
			t.Errorf("%+v: asked for is %+v", test, change)
		}
	}
}

// TestOfTwoChangesOfOneObjectTheLaterIsKnown: the one that ends last need not be the one
// that was made last.
func TestOfTwoChangesOfOneObjectTheLaterIsKnown(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.hosts(3)
	w.cluster(asks(1))
	nodes, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
	daemons, _ := w.wants(cephCluster, journal.ActionAddCephDaemons)
	w.Play(nodes, journal.StepChangeRook, asks(2, lists("a")))
	w.made(daemons, asks(3, lists("a"), has(3, 2)), journal.OutcomeDone)
	w.End(nodes, journal.OutcomeDone)
	w.quiet(cephCluster)
	if state := w.state(cephCluster); state != InStep {
		t.Errorf("it is %s", state)
	}
}

func TestQ29AnUnknownVersionHoldsEverythingWithOneMessage(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Unversioned = "", "the tag of image x is no version" }))
	w.hosts(3)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.pools(shared, 1, map[string]int{metadataSize: 1})
	w.quiet(pool)
	w.quiet(shared)
	w.quiet(cephCluster)
	for _, refusal := range w.S.Refusals {
		if refusal.Rule != RuleRookVersion || !strings.Contains(refusal.Reason, "the tag of image x is no version") {
			t.Errorf("refused is %+v", refusal)
		}
	}
	if len(w.S.Refusals) == 0 || w.state(pool) != Behind {
		t.Errorf("the pool is %s, refused is %+v", w.state(pool), w.S.Refusals)
	}
	w.cluster(asks(2))
	w.wants(pool, journal.ActionRaiseCopies)
}

func TestWhatEndedEarlyIsAskedForAgainWhenSomethingIsNewOrAfterARest(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(2)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.End(rec, journal.OutcomeCancelled)
	w.quiet(pool)
	w.Pass(fsm.RetryAfter - time.Second)
	w.quiet(pool)
	w.Pass(time.Second)
	w.wants(pool, journal.ActionRaiseCopies)
}

func TestASnapshotHoldsWhatIsKnown(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.cluster(asks(1, lists("a"), has(3, 2)))
	w.hosts(2)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.made(rec, journal.RookFacts{Generation: 2, Numbers: map[string]int{poolSize: 2}}, journal.OutcomeAbandoned)
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
		t.Fatal(err)
	}
	w.quiet(pool)
	if known := Known(w.S, pool)[pool.Name]; known.UID != pool.UID || known.Numbers[poolSize] != 1 {
		t.Errorf("known of the pool is %+v", known)
	}
	if known := Known(w.S, ceph)[ceph.Name]; known.UID != ceph.UID || len(known.Hosts) != 2 {
		t.Errorf("known of Ceph is %+v", known)
	}
	if len(Known(w.S, shared)) != 0 {
		t.Error("what was never seen is known")
	}
	w.pools(pool, 3, map[string]int{poolSize: 1})
	w.wants(pool, journal.ActionRaiseCopies)
}

func TestTheSettingsSwitchWhatHasNotBegunOff(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(2)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	w.wants(pool, journal.ActionRaiseCopies)
	w.P = w.P.With(Machine, Policy{Off: "maintain_rook_storage_nodes is off"})
	w.Decide()
	if rec := w.Open(pool); rec.Cancelling == nil || rec.Cancelling.Reason != "maintain_rook_storage_nodes is off" {
		t.Errorf("the action is %+v", rec)
	}
}

func TestEveryChangeTakesTheStorage(t *testing.T) {
	terms, err := fsm.TermsByKind(fsmnode.Capability(), Capability())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		if domains := terms[kind.Name].Domains; len(domains) != 1 || domains[0] != journal.DomainStorage {
			t.Errorf("%s takes %v", kind.Name, domains)
		}
	}
}

// TestAPoolWithANameOfItsOwnIsKnownByIt: Rook calls it after the filesystem and that name.
func TestAPoolWithANameOfItsOwnIsKnownByIt(t *testing.T) {
	named := journal.RookFacts{Generation: 1, Numbers: map[string]int{dataSize: 3}, Names: journal.RookNames{dataSize: "rook-shared-fs-fast"}}
	pools := []journal.CephPool{cephPool("rook-shared-fs-data0", 1, 1), cephPool("rook-shared-fs-fast", 3, 2)}
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crushOf(3, pools, "a", "b", "c")
	w.Observe(Machine, shared, named)
	w.says(shared, "dataPools.0.replicated.size: Rook is asked for 3")
	w.crushOf(2, pools, "a", "b")
	w.Pass(lowerDelay)
	_, change := w.wants(shared, journal.ActionLowerCopies)
	if change.Names[dataSize] != "rook-shared-fs-fast" {
		t.Errorf("asked for is %+v", change)
	}

	w = newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crushOf(3, pools, "a", "b", "c")
	named.Numbers = map[string]int{dataSize: 1}
	w.Observe(Machine, shared, named)
	rec, change := w.wants(shared, journal.ActionRaiseCopies)
	if change.Numbers[dataSize].To != 3 || change.Names[dataSize] != "rook-shared-fs-fast" {
		t.Errorf("asked for is %+v", change)
	}
	pools[1].Size = 4
	w.crushOf(3, pools, "a", "b", "c")
	w.Decide()
	if rec := w.S.Actions[rec.ID]; rec == nil || rec.Cancelling == nil || !strings.Contains(rec.Cancelling.Reason, "Ceph keeps 4 copies of pool rook-shared-fs-fast") {
		t.Errorf("it goes on: %+v", rec)
	}
}
