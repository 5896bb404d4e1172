package rook

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// TestAListInsteadOfAllNodesNamesEveryHostWithOSDs: Rook before 1.4 removes those of the others.
func TestAListInsteadOfAllNodesNamesEveryHostWithOSDs(t *testing.T) {
	w := newWorld(t, Policy{MinCopies: 1, MaxCopies: 3, Label: "store", Value: "yes"})
	w.join("a", labelled("yes"))
	w.join("lost", labelled("yes"), unready)
	w.join("other", labelled("no"))
	w.join("empty", unready)
	w.cluster(asks(1))
	w.hosts(1, occupies("a-local", "lost-local", "other-local"))
	rec, change := w.wants(cephCluster, journal.ActionAddStorageNodes)
	want := []journal.RookNode{
		{Name: "a", UID: "uid-a", Hostname: "a.local"},
		{Name: "lost", UID: "uid-lost", Hostname: "lost.local", Occupied: true},
		{Name: "other", UID: "uid-other", Hostname: "other.local", Occupied: true},
	}
	if !slices.Equal(change.Nodes, want) || !change.Whole || change.Label != "store=yes" {
		t.Errorf("asked for is %+v", change)
	}
	w.Decide()
	if rec.Cancelling != nil {
		t.Errorf("it is cancelled because %s", rec.Cancelling.Reason)
	}
}

func TestAListThatWouldLeaveOutAHostWithOSDsWaits(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *world)
		reason  string
		lift    func(w *world)
	}{
		"Ceph has not answered": {func(*world) {}, "Ceph has not reported yet which hosts have OSDs", func(w *world) { w.hosts(1, occupies("a-local")) }},
		"a host is no node": {
			func(w *world) { w.hosts(1, occupies("a-local", "x-local")) }, "host x-local has OSDs, but is not a node of the cluster",
			func(w *world) { w.join("x") },
		},
		"a node is being purged": {
			func(w *world) {
				w.join("b")
				w.hosts(1, occupies("a-local", "b-local"))
				w.purge("b")
			}, "node b has OSDs, and is being purged",
			func(w *world) { w.End(w.Open(nodeOf("b")), journal.OutcomeCancelled) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, limits, "a")
			w.cluster(asks(1))
			test.prepare(w)
			w.quiet(cephCluster)
			if rule, reason := w.refused(); rule != RuleStorageHostsNamed || !strings.Contains(reason, test.reason) {
				t.Errorf("refused by %s: %s", rule, reason)
			}
			if state := w.state(cephCluster); state != Behind {
				t.Errorf("it is %s", state)
			}
			test.lift(w)
			w.wants(cephCluster, journal.ActionAddStorageNodes)
		})
	}
}

func TestWhileNobodyKnowsTheHostsNothingIsCalledInStep(t *testing.T) {
	w := newWorld(t, limits, "a")
	w.cluster(asks(1, lists("a")))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	for _, of := range []journal.Subject{cephCluster, pool} {
		if state := w.state(of); state != Unknown {
			t.Errorf("%s is %s", of.Kind, state)
		}
	}
	w.hosts(1)
	for _, of := range []journal.Subject{cephCluster, pool, ceph} {
		if state := w.state(of); state != InStep {
			t.Errorf("%s is %s", of.Kind, state)
		}
	}
	w.Gone(Machine, ceph, "deleted")
	if state := w.state(pool); state != Unknown {
		t.Errorf("the pool is %s", state)
	}
}

// TestWhatIsTakenOffAgainAndAgainKeepsNoOtherWaiting, and is noticed though others come meanwhile.
func TestWhatIsTakenOffAgainAndAgainKeepsNoOtherWaiting(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.hosts(1)
	w.cluster(asks(1, lists("a")))
	rec, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
	w.made(rec, asks(2, lists("a", "b")), journal.OutcomeDone)
	w.Pass(time.Minute)
	w.join("c")
	w.cluster(asks(3, lists("a"))) // b was taken off
	rec, change := w.wants(cephCluster, journal.ActionAddStorageNodes)
	if !slices.Equal(hostnames(change), []string{"b.local", "c.local"}) {
		t.Fatalf("to be listed are %q", hostnames(change))
	}
	w.made(rec, asks(4, lists("a", "b", "c")), journal.OutcomeDone)
	w.Pass(time.Minute)
	w.join("d")
	w.cluster(asks(5, lists("a", "c"))) // again
	rec, change = w.wants(cephCluster, journal.ActionAddStorageNodes)
	if !slices.Equal(hostnames(change), []string{"d.local"}) {
		t.Fatalf("to be listed are %q", hostnames(change))
	}
	w.made(rec, asks(6, lists("a", "c", "d")), journal.OutcomeDone)
	w.quiet(cephCluster)
	if rule, reason := w.refused(); rule != fsm.RuleContested || !strings.Contains(reason, "to b again") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

// begins has the action begin with its change.
func (w *world) begins(rec *journal.ActionRecord) {
	w.T.Helper()
	w.Write(journal.Draft{
		Type: journal.TypeActionPlanned, Subject: rec.Subject, Action: rec.ID, Actor: "operator",
		Payload: journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepChangeRook}}}},
	}, journal.Draft{
		Type: journal.TypeStepStarted, Subject: rec.Subject, Action: rec.ID, Actor: "operator",
		Payload: journal.StepStarted{Step: journal.StepChangeRook, Attempt: 1},
	})
}

// goesOn expects that nobody cancels the action.
func (w *world) goesOn(rec *journal.ActionRecord) {
	w.T.Helper()
	w.Decide()
	if rec := w.S.Actions[rec.ID]; rec == nil || rec.Cancelling != nil {
		w.T.Errorf("it does not go on: %+v", rec)
	}
}

// TestAnAppendThatHasBegunGivesWayToAPurge: what it has done by then the purge takes back.
func TestAnAppendThatHasBegunGivesWayToAPurge(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.hosts(1)
	w.cluster(asks(1, lists("a")))
	rec, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
	w.begins(rec)
	w.purge("a") // of which it has nothing
	w.Decide()
	if rec := w.open(cephCluster, journal.ActionAddStorageNodes); rec.Cancelling != nil {
		t.Fatalf("it is cancelled because %s", rec.Cancelling.Reason)
	}
	w.purge("b")
	w.ends(cephCluster, journal.ActionAddStorageNodes, "node b is being purged")
}

func TestNothingIsRaisedForWhichRookWouldTakeCopiesAway(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.pools(shared, 1, map[string]int{metadataSize: 1, dataSize: 1})
	w.hosts(2, keeps("rook-shared-fs-metadata", 2), keeps("rook-shared-fs-data0", 3))
	_, change := w.wants(shared, journal.ActionRaiseCopies)
	if len(change.Numbers) != 1 || change.Numbers[metadataSize].To != 2 {
		t.Errorf("asked for is %+v", change)
	}
	w.hosts(2, keeps("rook-shared-fs-metadata", 3))
	w.ends(shared, journal.ActionRaiseCopies, "Ceph keeps 3 copies of pool rook-shared-fs-metadata, and Rook would lower that to 2")
}

func TestWhileCephIsShortOfRoomNothingIsRaised(t *testing.T) {
	for _, code := range []string{"OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL", "POOL_NEARFULL", "POOL_BACKFILLFULL", "POOL_FULL"} {
		w := newWorld(t, limits)
		w.cluster(asks(1, lists(), has(1, 1)))
		w.pools(pool, 1, map[string]int{poolSize: 1})
		w.hosts(3, warns("MON_CLOCK_SKEW", code))
		w.quiet(pool)
		if rule, reason := w.refused(); rule != RuleCephRoom || !strings.Contains(reason, "("+code+")") {
			t.Errorf("refused by %s: %s", rule, reason)
		}
		w.wants(cephCluster, journal.ActionAddCephDaemons) // they need none
		w.hosts(3, warns("MON_CLOCK_SKEW"))
		w.wants(pool, journal.ActionRaiseCopies)
	}
}

func TestWhatTheConfigurationAsksForIsNotSaidOfHosts(t *testing.T) {
	for _, test := range []struct {
		hosts int
		why   string
	}{
		{1, "min_ceph_pool_replication is 2, so it should have 2 copies, and has replicated.size 1"},
		{2, "min_ceph_pool_replication is 2, so it should have 2 copies, and has replicated.size 1"},
		{3, "3 hosts have OSDs that are up and in, so it should have 3 copies, and has replicated.size 1"},
	} {
		w := newWorld(t, Policy{MinCopies: 2, MaxCopies: 3, Pools: configured})
		w.cluster(asks(1, lists(), has(3, 2)))
		w.hosts(test.hosts)
		w.pools(pool, 1, map[string]int{poolSize: 1})
		if rec, _ := w.wants(pool, journal.ActionRaiseCopies); rec.Request.Reason != test.why {
			t.Errorf("with %d hosts the reason is %q", test.hosts, rec.Request.Reason)
		}
	}
}

// TestAHostThatIsLostForAMomentCostsAMoment: what is asked for ends, and is asked for again as
// soon as the host is back.
func TestAHostThatIsLostForAMomentCostsAMoment(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(2)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.hosts(1)
	w.ends(pool, journal.ActionRaiseCopies, "1 host has OSDs that are up and in, but it needs 2")
	w.End(rec, journal.OutcomeCancelled)
	w.quiet(pool)
	w.hosts(2)
	w.wants(pool, journal.ActionRaiseCopies)
}

func TestANodeThatWasNotReadyForAMomentIsListedWhenItIs(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.hosts(1)
	w.cluster(asks(1, lists("a")))
	rec, _ := w.wants(cephCluster, journal.ActionAddStorageNodes)
	w.End(rec, journal.OutcomeAbandoned) // by a live read
	w.quiet(cephCluster)
	w.join("b", unready)
	w.quiet(cephCluster)
	w.join("b")
	w.wants(cephCluster, journal.ActionAddStorageNodes)
}

func TestPoolsThatAreNotConfiguredAnyMoreAreFormer(t *testing.T) {
	w := newWorld(t, limits)
	w.pools(pool, 1, nil)
	w.pools(shared, 1, nil)
	w.cluster(asks(1))
	w.hosts(1)
	former := Unconfigured(w.S, []journal.Subject{journal.RookPools(journal.KindCephFilesystem, "rook-shared-fs")})
	if want := []journal.Subject{journal.RookPools(journal.KindCephBlockPool, "replicapool")}; !slices.Equal(former, want) {
		t.Errorf("former are %+v", former)
	}
	w.Gone(Machine, pool, "so")
	if former := Unconfigured(w.S, nil); len(former) != 1 {
		t.Errorf("former are %+v", former)
	}
}

// Each turn of the loop contains one look.
func TestLookTimeIsNotQuadratic(t *testing.T) {
	for _, listed := range []bool{true, false} {
		few, many := quickestLook(t, 50, listed), quickestLook(t, 1000, listed)
		if many > 150*few { // 20 times as many, whose square is 400
			t.Errorf("a look takes %s with fifty nodes and %s with a thousand", few, many)
		}
	}
}

// quickestLook returns the least CPU time of 20 looks at this many nodes, which does not depend on what
// else the machine does. listed: the CephCluster lists the nodes.
func quickestLook(t *testing.T, nodes int, listed bool) time.Duration {
	t.Helper()
	w, facts := newWorld(t, limits), journal.RookFacts{Ceph: &journal.CephFacts{}}
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("node-%04d", i))
		w.join(names[i])
		if i%2 == 0 {
			facts.Hosts = append(facts.Hosts, names[i]+"-local")
		}
	}
	facts.Ceph.Occupied = facts.Hosts
	w.Observe(Machine, ceph, facts)
	storage := func(*journal.RookFacts) {}
	if listed {
		storage = lists(names...)
	}
	w.cluster(asks(1, storage))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	look, quickest := fsm.NewWorld(w.S, w.P, w.Now), time.Hour
	for range 20 {
		began := threadTime(t)
		wishes(w.S.Things[cephCluster.UID], look)
		unlistedHost(look)
		quickest = min(quickest, threadTime(t)-began)
	}
	return quickest
}

// threadTime returns the CPU time that the thread of this goroutine, which must be locked, has used.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec // getrusage counts whole ticks of the kernel's clock
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}
