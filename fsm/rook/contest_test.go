package rook

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// copiesAt is the CephBlockPool with that many copies.
func copiesAt(generation int64, size int) journal.RookFacts {
	return journal.RookFacts{Generation: generation, Numbers: map[string]int{poolSize: size}}
}

// TestAHostThatComesAndGoesIsNobodysFight: each raise and each lowering is for other hosts than
// the one before.
func TestAHostThatComesAndGoesIsNobodysFight(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.cluster(asks(1, lists("a", "b"), has(3, 2)))
	w.crush(2, "a.local", "b.local")
	w.Observe(Machine, pool, copiesAt(1, 2))
	for i := range int64(4) {
		w.crush(3, "a.local", "b.local", "c.local")
		rec, _ := w.wants(pool, journal.ActionRaiseCopies)
		w.made(rec, copiesAt(2*i+2, 3), journal.OutcomeDone)
		w.Observe(Machine, pool, copiesAt(2*i+2, 3))
		w.Pass(time.Minute)
		w.crush(2, "b.local", "a.local") // Ceph names them in any order
		w.Pass(lowerDelay)
		rec, _ = w.wants(pool, journal.ActionLowerCopies)
		w.made(rec, copiesAt(2*i+3, 2), journal.OutcomeDone)
		w.Observe(Machine, pool, copiesAt(2*i+3, 2))
		w.Pass(time.Minute)
	}
	if kept := w.S.Things[pool.UID].Contests; len(kept) > 2 {
		t.Errorf("of each change that was made is kept %v", kept)
	}
}

// TestWhoUndoesARaiseIsNotFoughtThoughHostsCameBefore: only what was made among other hosts is
// forgotten, and the order in which Ceph names the hosts says nothing.
func TestWhoUndoesARaiseIsNotFoughtThoughHostsCameBefore(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(2, "a", "b")
	w.crush(3, "a", "b", "c")
	for i := range int64(2) {
		w.Observe(Machine, pool, copiesAt(2*i+1, 2))
		rec, _ := w.wants(pool, journal.ActionRaiseCopies)
		w.made(rec, copiesAt(2*i+2, 3), journal.OutcomeDone)
		w.Pass(time.Minute)
		w.crush(3, "c", "b", "a")
	}
	w.Observe(Machine, pool, copiesAt(5, 2))
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the copies of CephBlockPool rook-ceph/replicapool") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

// sets plays an action to its end that sets that of Ceph's pools.
func (w *world) sets(want string) {
	w.T.Helper()
	rec, change := w.wants(ceph, journal.ActionSetCephPools)
	if !strings.Contains(change.To(), want) {
		w.T.Errorf("asked for is %s, want %s", change.To(), want)
	}
	w.Play(rec, "x", nil)
	w.End(rec, journal.OutcomeDone)
}

// TestTheMgrsPoolFollowsAHostThatComesAndGoes, which is no fight either.
func TestTheMgrsPoolFollowsAHostThatComesAndGoes(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	looks := func(size int, hosts ...string) {
		w.Pass(time.Minute)
		w.crushOf(len(hosts), []journal.CephPool{cephPool(journal.OldMgrPool, size, size-size/2)}, hosts...)
	}
	looks(2, "a", "b")
	for range 4 {
		looks(2, "a", "b", "c")
		w.sets("size of pool device_health_metrics 3")
		looks(3, "a", "b")
		w.Pass(lowerDelay)
		w.sets("size of pool device_health_metrics 2")
	}
}

// TestANodeThatWasPurgedAndJoinsAgainIsNobodysFight: it is another node of the same name.
func TestANodeThatWasPurgedAndJoinsAgainIsNobodysFight(t *testing.T) {
	w := newWorld(t, limits, "a")
	for i := range int64(4) {
		again := journal.NodeSubject("b", "uid-b-"+string(rune('0'+i)))
		w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: again, Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker, Hostname: "b.local"}}})
		w.cluster(asks(2*i+1, lists("a")))
		rec, change := w.wants(cephCluster, journal.ActionAddStorageNodes)
		if !slices.Equal(hostnames(change), []string{"b.local"}) {
			t.Fatalf("to be listed are %q", hostnames(change))
		}
		w.made(rec, asks(2*i+2, lists("a", "b")), journal.OutcomeDone)
		w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: again, Payload: journal.NodeGone{Reason: "deleted"}})
		w.Pass(time.Minute)
	}
}

// TestWhoEditsCopiesBackAndForthMeetsAHold: whatever they set, EKCO sets its own a few times and
// then waits, and says for what.
func TestWhoEditsCopiesBackAndForthMeetsAHold(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(3, "a", "b", "c")
	generation, changes := int64(1), 0
	for i := range 20 {
		size := 1 + i%2
		w.Observe(Machine, pool, copiesAt(generation, size))
		for {
			rec, change := w.asked(pool, journal.ActionRaiseCopies)
			if rec == nil {
				break
			}
			changes++
			generation++
			w.made(rec, copiesAt(generation, change.Numbers[poolSize].To), journal.OutcomeDone)
		}
		generation++
		w.Pass(time.Minute)
	}
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "EKCO sets it again at") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	if changes > 4 {
		t.Errorf("EKCO made %d changes", changes)
	}
}

// TestWhoSetsTheMgrsPoolBackAndForthMeetsAHold: to one copy and to three on two hosts.
func TestWhoSetsTheMgrsPoolBackAndForthMeetsAHold(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Storage = nil }))
	changes := 0
	for i := range 20 {
		size := 1 + 2*(i%2)
		w.Pass(time.Minute)
		w.Observe(Machine, ceph, says("16.2.15", 2, 2, cephPool(journal.OldMgrPool, size, 1)))
		if rec, _ := w.asked(ceph, journal.ActionSetCephPools); rec != nil {
			changes++
			w.Play(rec, "x", nil)
			w.End(rec, journal.OutcomeDone)
		}
	}
	if rule, _ := w.refused(); rule != fsm.RuleContested || changes != 4 {
		t.Errorf("after %d changes it is refused by %s", changes, rule)
	}
}

// TestTwoEKCOsDoNotFight: what the other one made is as this one would have it, and what is read
// late is older than what it made itself.
func TestTwoEKCOsDoNotFight(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(3, "a", "b", "c")
	w.Observe(Machine, pool, copiesAt(1, 2))
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.Observe(Machine, pool, copiesAt(2, 3)) // the other was first
	w.Decide()
	if rec := w.open(pool, journal.ActionRaiseCopies); rec == nil || rec.Cancelling == nil || rec.Cancelling.Reason != "nothing is left to change" {
		t.Fatalf("it goes on with %+v", rec)
	}
	w.End(rec, journal.OutcomeAbandoned)
	w.quiet(pool)
	w.Observe(Machine, pool, copiesAt(3, 2)) // somebody undid that
	rec, _ = w.wants(pool, journal.ActionRaiseCopies)
	w.made(rec, copiesAt(4, 3), journal.OutcomeDone)
	w.Observe(Machine, pool, copiesAt(3, 2)) // an answer from before
	w.quiet(pool)
	w.Pass(24 * time.Hour)
	w.quiet(pool)
}

// TestAfterAFightOtherHostsCountAnew: one that came, or one that left.
func TestAfterAFightOtherHostsCountAnew(t *testing.T) {
	for name, hosts := range map[string][]string{"came": {"a", "b", "c", "d", "e"}, "left": {"a", "b", "c"}} {
		w := newWorld(t, limits)
		w.cluster(asks(1, lists(), has(3, 2)))
		w.crush(4, "a", "b", "c", "d")
		for i := range int64(2) {
			w.Observe(Machine, pool, copiesAt(2*i+1, 2))
			rec, _ := w.wants(pool, journal.ActionRaiseCopies)
			w.made(rec, copiesAt(2*i+2, 3), journal.OutcomeDone)
			w.Pass(time.Minute)
		}
		w.Observe(Machine, pool, copiesAt(5, 2))
		if rule, _ := w.refused(); rule != fsm.RuleContested {
			t.Fatalf("refused by %s", rule)
		}
		w.crush(len(hosts), hosts...)
		if rec, _ := w.asked(pool, journal.ActionRaiseCopies); rec == nil {
			t.Errorf("when a host %s, refused is %+v", name, w.S.Refusals)
		}
	}
}

// TestWhoTakesDaemonsAwayAgainAndAgainIsNotFought: as an installer does that runs again.
func TestWhoTakesDaemonsAwayAgainAndAgainIsNotFought(t *testing.T) {
	w := newWorld(t, limits)
	w.hosts(3)
	for generation := int64(1); generation < 5; generation += 2 {
		w.cluster(asks(generation, lists()))
		rec, _ := w.wants(cephCluster, journal.ActionAddCephDaemons)
		w.made(rec, asks(generation+1, lists(), has(3, 2)), journal.OutcomeDone)
		w.Pass(time.Minute)
	}
	w.cluster(asks(5, lists()))
	w.quiet(cephCluster)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "the monitors and managers of CephCluster rook-ceph/rook-ceph") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	w.Pass(time.Hour)
	w.wants(cephCluster, journal.ActionAddCephDaemons)
}
