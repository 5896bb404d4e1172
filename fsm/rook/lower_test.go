package rook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// crush observes which hosts the CRUSH map has, of which the first so many have OSDs that are up
// and in.
func (w *world) crush(serving int, hosts ...string) {
	w.T.Helper()
	w.crushOf(serving, madePools(), hosts...)
}

func (w *world) crushOf(serving int, pools []journal.CephPool, hosts ...string) {
	w.T.Helper()
	w.Observe(Machine, ceph, journal.RookFacts{Hosts: hosts[:serving], Ceph: &journal.CephFacts{Health: "HEALTH_OK", Occupied: hosts, Crush: hosts, Pools: pools}})
}

// madePools are those that Rook makes of the custom resources of the tests.
func madePools() []journal.CephPool {
	return []journal.CephPool{cephPool("replicapool", 1, 1), cephPool("rook-shared-fs-data0", 1, 1), cephPool("rook-shared-fs-metadata", 1, 1)}
}

// TestAPoolWhoseHostsDoNotCountIsNotLowered, and keeps no other from being.
func TestAPoolWhoseHostsDoNotCountIsNotLowered(t *testing.T) {
	for name, change := range map[string]func(*journal.CephPool){
		"on OSDs":                func(p *journal.CephPool) { p.OnOSDs = true },
		"bound":                  func(p *journal.CephPool) { p.Bound = true },
		"with a name of its own": func(p *journal.CephPool) { p.Name = "mine" },
	} {
		t.Run(name, func(t *testing.T) {
			pools := madePools()
			change(&pools[0])
			w := newWorld(t, limits)
			w.cluster(asks(1, lists(), has(3, 2)))
			w.crushOf(3, pools, "a", "b", "c")
			w.pools(pool, 1, map[string]int{poolSize: 3})
			w.pools(shared, 1, map[string]int{metadataSize: 3})
			w.crushOf(2, pools, "a", "b")
			w.Pass(lowerDelay)
			if rec, _ := w.asked(pool, journal.ActionLowerCopies); rec != nil {
				t.Errorf("asked for is %+v", rec.Request)
			}
			w.wants(shared, journal.ActionLowerCopies)
		})
	}
}

// shrunk is a cluster of three hosts with three copies, of which one has left the CRUSH map.
func shrunk(t *testing.T, p Policy, nodes ...string) *world {
	t.Helper()
	w := newWorld(t, p, nodes...)
	w.cluster(asks(1, lists(nodes...), has(3, 2)))
	w.crush(3, "a.local", "b.local", "c.local")
	w.pools(pool, 1, map[string]int{poolSize: 3})
	w.crush(2, "a.local", "b.local")
	return w
}

func TestCopiesAreLoweredOnceAHostIsGoneForGood(t *testing.T) {
	w := shrunk(t, limits, "a", "b")
	w.quiet(pool)
	if state := w.state(pool); state != Behind {
		t.Errorf("until then the pool is %s, want that it shows", state)
	}
	w.Pass(lowerDelay - time.Second)
	w.quiet(pool)
	w.Pass(time.Second)
	rec, change := w.wants(pool, journal.ActionLowerCopies)
	if change.Numbers[poolSize] != (journal.RookNumber{From: 3, To: 2}) || len(change.Gone) != 1 || change.Gone[0] != "c.local" {
		t.Errorf("asked for is %+v", change)
	}
	if want := "host c.local is gone for good, and the CRUSH map has 2 hosts left, so it should have replicated.size 2, and has replicated.size 3"; rec.Request.Reason != want {
		t.Errorf("the reason is %q", rec.Request.Reason)
	}
	w.made(rec, journal.RookFacts{Generation: 2, Numbers: map[string]int{poolSize: 2}}, journal.OutcomeDone)
	w.quiet(pool)
	w.pools(pool, 2, map[string]int{poolSize: 2})
	w.Pass(24 * time.Hour)
	w.quiet(pool)
}

func TestQ11CopiesAreNotLoweredWhile(t *testing.T) {
	for name, change := range map[string]func(*world){
		"the host is merely down":           func(w *world) { w.crush(2, "a.local", "b.local", "c.local") },
		"all others are down too":           func(w *world) { w.crush(0, "a.local", "b.local", "c.local") },
		"the host has no OSD any more":      func(w *world) { w.crush(2, "a.local", "b.local", "c.local") },
		"its Node is still there":           func(w *world) { w.join("c", unready) },
		"its Node has another hostname":     func(w *world) { w.join("c.local", func(f *journal.NodeFacts) { f.Hostname = "other" }) },
		"the CRUSH map has no host at all":  func(w *world) { w.crush(0) },
		"a node of its name is there again": func(w *world) { w.join("c") },
		"another host has come":             func(w *world) { w.crush(2, "a.local", "b.local", "d") },
		"nobody knows the CRUSH map":        func(w *world) { w.Observe(Machine, ceph, journal.RookFacts{Hosts: []string{"a"}}) },
		"Ceph is not there":                 func(w *world) { w.Gone(Machine, ceph, "deleted") },
		"there is no CephCluster":           func(w *world) { w.Gone(Machine, cephCluster, "deleted") },
		"somebody has set it since": func(w *world) {
			w.pools(pool, 2, map[string]int{poolSize: 2})
			w.pools(pool, 3, map[string]int{poolSize: 3})
		},
		"the least that is configured": func(w *world) {
			w.P = w.P.With(Machine, Policy{MinCopies: 3, MaxCopies: 3, Pools: configured})
		},
		"it is no pool of the configuration": func(w *world) { w.P = w.P.With(Machine, Policy{MinCopies: 1, MaxCopies: 3}) },
		"the settings switch it off":         func(w *world) { w.P = w.P.With(Machine, Policy{Off: "off", Pools: configured, MaxCopies: 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := shrunk(t, limits, "a", "b")
			w.Pass(lowerDelay / 2)
			change(w)
			w.Pass(lowerDelay)
			w.quiet(pool)
		})
		t.Run(name+", after it was asked for", func(t *testing.T) {
			w := shrunk(t, limits, "a", "b")
			w.Pass(lowerDelay)
			rec, _ := w.wants(pool, journal.ActionLowerCopies)
			change(w)
			w.Decide()
			if name == "there is no CephCluster" {
				return // the object goes as well, or the patch finds it
			}
			if rec := w.S.Actions[rec.ID]; rec.Cancelling == nil {
				t.Errorf("it goes on: %+v", rec.Request)
			}
		})
	}
}

// TestAPurgeNeitherWaitsForALoweringNorKeepsItWaiting: a host that a purge has not removed yet
// counts, and one that it has removed does not, whatever else is open of it.
func TestAPurgeNeitherWaitsForALoweringNorKeepsItWaiting(t *testing.T) {
	w := shrunk(t, limits, "a", "b")
	w.purge("b")
	w.Pass(lowerDelay)
	if _, change := w.wants(pool, journal.ActionLowerCopies); change.Numbers[poolSize].To != 2 {
		t.Errorf("while a host is purged that is there, asked for is %+v", change)
	}
}

func TestAMaximumThatIsLessLowersNothing(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(3, "a", "b", "c")
	w.pools(pool, 1, map[string]int{poolSize: 3})
	w.P = w.P.With(Machine, Policy{MinCopies: 1, MaxCopies: 1, Pools: configured})
	w.Pass(time.Hour)
	w.quiet(pool)
}

func TestCopiesThatWereSetBeforeTheirHostsCameAreMeant(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(2, "a", "b")
	w.pools(pool, 1, map[string]int{poolSize: 3})
	w.Pass(time.Hour)
	w.quiet(pool)
}

func TestRookThatTakesNoSingleCopyIsNotAskedForOne(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(2, "a", "b")
	w.Observe(Machine, pool, journal.RookFacts{Generation: 1, Numbers: map[string]int{poolSize: 2}, Redundant: []string{poolSize}})
	w.crush(1, "a")
	w.Pass(time.Hour)
	w.quiet(pool)
	w.Observe(Machine, pool, journal.RookFacts{Generation: 1, Numbers: map[string]int{poolSize: 2}})
	w.wants(pool, journal.ActionLowerCopies)
}

func TestOnePoolIsLoweredAtATime(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(3, "a", "b", "c")
	w.pools(pool, 1, map[string]int{poolSize: 3})
	w.pools(shared, 1, map[string]int{metadataSize: 3, dataSize: 3})
	w.crush(2, "a", "b")
	w.Pass(lowerDelay)
	w.Decide()
	sizes := map[journal.Subject]map[string]int{pool: {poolSize: 3}, shared: {metadataSize: 3, dataSize: 3}}
	for generation := range int64(3) {
		if len(w.S.Actions) != 1 {
			t.Fatalf("open are %+v", w.S.Actions)
		}
		for _, rec := range w.S.Actions {
			change, err := journal.InputOf[journal.RookChange](rec.Request)
			if err != nil || len(change.Numbers) != 1 {
				t.Fatalf("asked for is %+v, %v", change, err)
			}
			for place, number := range change.Numbers {
				sizes[rec.Subject][place] = number.To
			}
			facts := journal.RookFacts{Generation: 2 + generation, Numbers: sizes[rec.Subject]}
			w.made(rec, facts, journal.OutcomeDone)
			w.Observe(Machine, rec.Subject, facts)
		}
		w.Decide()
	}
	w.quiet(pool)
	w.quiet(shared)
	if fmt.Sprint(sizes[pool], sizes[shared]) != fmt.Sprint(map[string]int{poolSize: 2}, map[string]int{metadataSize: 2, dataSize: 2}) {
		t.Errorf("the sizes are %v", sizes)
	}
}

// TestCopiesDoNotGoUpAndDown: whatever hosts come and go, what one rule makes the other leaves
// alone, and no state of the hosts leads to more than one change.
func TestCopiesDoNotGoUpAndDown(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for _, p := range []Policy{{MinCopies: 1, MaxCopies: 3}, {MinCopies: 2, MaxCopies: 3}, {MinCopies: 1, MaxCopies: 1}, {MinCopies: 1, MaxCopies: 5}, {MinCopies: 3, MaxCopies: 2}} {
		p.Pools = configured
		for before := 1; before <= 5; before++ {
			for after := 1; after <= 5; after++ {
				for serving := 0; serving <= after; serving++ {
					for size := 1; size <= 5; size++ {
						w := newWorld(t, p)
						w.cluster(asks(1, lists(), has(3, 2)))
						w.crush(before, names[:before]...)
						w.pools(pool, 1, map[string]int{poolSize: size})
						w.crush(serving, names[:after]...)
						if changes := w.settle(size); changes > 1 {
							t.Errorf("limits %d to %d, %d hosts, then %d of which %d serve, with %d copies: %d changes", p.MinCopies, p.MaxCopies, before, after, serving, size, changes)
						}
					}
				}
			}
		}
	}
}

// settle makes every change that is asked for of the pool in some days, and counts them.
func (w *world) settle(size int) (changes int) {
	w.T.Helper()
	var last journal.ActionKind
	for generation := int64(2); generation < 6; generation++ {
		w.Pass(24 * time.Hour)
		w.Decide()
		var rec *journal.ActionRecord
		for _, kind := range []journal.ActionKind{journal.ActionRaiseCopies, journal.ActionLowerCopies} {
			if open := w.open(pool, kind); open != nil {
				if rec != nil {
					w.T.Fatalf("both %s and %s are asked for", rec.ID, open.ID)
				}
				rec = open
			}
		}
		if rec == nil {
			return changes
		}
		if rec.Kind != journal.ActionRaiseCopies || last != rec.Kind {
			changes++ // copies are raised one at a time
		}
		last = rec.Kind
		change, err := journal.InputOf[journal.RookChange](rec.Request)
		if err != nil || change.Numbers[poolSize].From != size {
			w.T.Fatalf("asked for is %+v, %v", change, err)
		}
		size = change.Numbers[poolSize].To
		facts := journal.RookFacts{Generation: generation, Numbers: map[string]int{poolSize: size}}
		w.made(rec, facts, journal.OutcomeDone)
		w.Observe(Machine, pool, facts)
	}
	return changes
}

func TestWhoeverSetsTheCopiesBackIsLeftAlone(t *testing.T) {
	w := shrunk(t, limits)
	w.Pass(lowerDelay)
	rec, _ := w.wants(pool, journal.ActionLowerCopies)
	lowered := journal.RookFacts{Generation: 2, Numbers: map[string]int{poolSize: 2}}
	w.made(rec, lowered, journal.OutcomeDone)
	w.Observe(Machine, pool, lowered)
	w.pools(pool, 3, map[string]int{poolSize: 3})
	w.Pass(48 * time.Hour)
	w.quiet(pool)

	// For another host it counts again.
	w.crush(1, "a.local")
	w.Pass(lowerDelay)
	if _, change := w.wants(pool, journal.ActionLowerCopies); change.Numbers[poolSize].To != 1 {
		t.Errorf("asked for is %+v", change)
	}
}

func TestWhatIsGoneIsInASnapshot(t *testing.T) {
	w := newWorld(t, limits, "a", "b")
	w.join("w.3", func(f *journal.NodeFacts) { f.Hostname = "w3.example.com" })
	w.cluster(asks(1, lists("a", "b"), has(3, 2)))
	w.crush(3, "a-local", "b-local", "w3-example-com")
	w.pools(pool, 1, map[string]int{poolSize: 3})
	w.crush(2, "a-local", "b-local")
	w.Pass(lowerDelay)
	w.quiet(pool)
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf("w.3"), Payload: journal.NodeGone{}})
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
		t.Fatal(err)
	}
	_, change := w.wants(pool, journal.ActionLowerCopies)
	if len(change.Gone) != 1 || change.Gone[0] != "w3-example-com" {
		t.Errorf("gone are %+v", change.Gone)
	}
}

func TestOnlyTheNewestHostsThatLeftAreKept(t *testing.T) {
	w := newWorld(t, limits)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("h%02d", i)
	}
	w.crush(1, many...)
	w.crush(1, many[0])
	kept := of(w.S.Things[ceph.UID]).Left
	if len(kept) != maxLeft || kept[len(kept)-1].Host != "h99" || !strings.HasPrefix(kept[0].Host, "h3") {
		t.Errorf("%d are kept: %+v", len(kept), kept)
	}
}

// TestWhereRookLeavesPoolsAsTheyAreTheyAreLoweredByCommand: of a filesystem Rook before 1.4 carries
// no lower number into Ceph, and the action would wait for ever.
func TestWhereRookLeavesPoolsAsTheyAreTheyAreLoweredByCommand(t *testing.T) {
	for version, byCommand := range map[string]bool{"v1.0.4": true, "v1.3.11": true, "v1.4.0": false, "v1.10.0": false} {
		w := shrunk(t, limits, "a", "b")
		w.cluster(asks(2, lists("a", "b"), func(f *journal.RookFacts) { f.Version = version }))
		w.Pass(lowerDelay)
		if _, change := w.wants(pool, journal.ActionLowerCopies); change.ByCommand != byCommand {
			t.Errorf("with Rook %s asked for is %+v", version, change)
		}
	}
}

func TestTheDetailsSayInHowManyCopiesAPoolIsToEnd(t *testing.T) {
	w := shrunk(t, limits, "a", "b")
	w.pools(shared, 2, map[string]int{metadataSize: 3})
	w.says(pool, "replicated.size: Rook is asked for 3, Ceph keeps 1 copy of replicapool, EKCO wants 2",
		"waits: EKCO sets replicated.size 2 at 2026-03-01T12:01:30Z if that is still needed")
	w.says(shared, "metadataPool.replicated.size: Rook is asked for 3, Ceph keeps 1 copy of rook-shared-fs-metadata") // somebody set it since
	w.P = w.P.With(Machine, Policy{Off: "off", MinCopies: 1, MaxCopies: 3, Pools: configured})
	w.says(pool, "replicated.size: Rook is asked for 3, Ceph keeps 1 copy of replicapool")
}

// withoutDisks are four hosts with three copies, of which d has lost its disks and keeps its Node,
// and c is purged.
func withoutDisks(t *testing.T, p Policy) *world {
	t.Helper()
	w := newWorld(t, p, "a", "b", "d")
	w.cluster(asks(1, lists("a", "b", "d"), has(3, 2)))
	w.crush(4, "a.local", "b.local", "c.local", "d.local")
	w.pools(pool, 1, map[string]int{poolSize: 3})
	w.crush(3, "a.local", "b.local", "c.local")
	w.Pass(time.Hour)
	w.crush(2, "a.local", "b.local")
	w.Pass(lowerDelay)
	return w
}

// TestAHostThatMayReturnIsWaitedForADayAndSaysSo: whoever replaces its disks keeps the copies.
func TestAHostThatMayReturnIsWaitedForADayAndSaysSo(t *testing.T) {
	w := withoutDisks(t, limits)
	w.quiet(pool)
	rule, reason := w.refused()
	if rule != RuleHostMayReturn || !strings.HasPrefix(reason, "host d.local has left the CRUSH map too") || w.state(pool) != Behind {
		t.Fatalf("it is %s, and refused by %s: %s", w.state(pool), rule, reason)
	}
	if lines := w.details(pool); !slices.Contains(lines, "waits: "+reason) || !strings.HasSuffix(lines[0], "EKCO wants 2") {
		t.Errorf("it says %q", lines)
	}
	w.Pass(returnTimeout - time.Hour - lowerDelay - time.Second)
	w.quiet(pool)
	w.Pass(time.Second)
	rec, change := w.wants(pool, journal.ActionLowerCopies)
	if change.Numbers[poolSize].To != 2 || !slices.Equal(change.Gone, []string{"c.local"}) {
		t.Errorf("asked for is %+v", change)
	}
	w.Decide()
	if rec := w.S.Actions[rec.ID]; rec == nil || rec.Cancelling != nil {
		t.Errorf("it does not go on: %+v", rec)
	}
}

// TestALoweringGivesWayWhenTheNodeOfAnotherLostHostIsThereAgain, though it is to as many copies then.
func TestALoweringGivesWayWhenTheNodeOfAnotherLostHostIsThereAgain(t *testing.T) {
	w := withoutDisks(t, limits)
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf("d"), Payload: journal.NodeGone{}})
	rec, _ := w.wants(pool, journal.ActionLowerCopies)
	w.join("d")
	w.Decide()
	if rec := w.S.Actions[rec.ID]; rec == nil || rec.Cancelling == nil || !strings.Contains(rec.Cancelling.Reason, "host d.local has left") {
		t.Errorf("it goes on: %+v", rec)
	}
}

func TestAHostThatCannotReturnKeepsNoOtherWaiting(t *testing.T) {
	labels := Policy{MinCopies: 1, MaxCopies: 3, Pools: configured, Label: "store", Value: "yes"}
	mine := Policy{MinCopies: 1, MaxCopies: 3, Pools: configured, UserManaged: true}
	for name, test := range map[string]struct {
		policy Policy
		then   func(*world)
		lowers bool
	}{
		"listed":                    {limits, func(*world) {}, false},
		"to be listed again":        {limits, func(w *world) { w.cluster(asks(2, lists("a", "b"), has(3, 2))) }, false},
		"one of all nodes":          {mine, func(w *world) { w.cluster(asks(2, has(3, 2))) }, false},
		"without label, but listed": {labels, func(*world) {}, false},
		"without label, not listed": {labels, func(w *world) { w.cluster(asks(2, lists("a", "b"), has(3, 2))) }, true},
		"with label, not listed":    {labels, func(w *world) { w.join("d", labelled("yes")); w.cluster(asks(2, lists("a", "b"), has(3, 2))) }, false},
		"off the list of somebody":  {mine, func(w *world) { w.cluster(asks(2, lists("a", "b"), has(3, 2))) }, true},
		"on the list of somebody":   {mine, func(*world) {}, false},
		"purged": {limits, func(w *world) {
			w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf("d"), Payload: journal.NodeGone{}})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutDisks(t, test.policy)
			test.then(w)
			if rec, _ := w.asked(pool, journal.ActionLowerCopies); (rec != nil) != test.lowers {
				t.Errorf("lowered: %t, want %t; refused are %+v", rec != nil, test.lowers, w.S.Refusals)
			}
		})
	}
}

// TestAHostThatMayReturnKeepsWhatNeedNotWaitFromNothing: with as many copies as it would have a
// place for, a number is lowered at once.
func TestAHostThatMayReturnKeepsWhatNeedNotWaitFromNothing(t *testing.T) {
	w := withoutDisks(t, Policy{MinCopies: 1, MaxCopies: 4, Pools: configured})
	w.pools(shared, 1, map[string]int{metadataSize: 3, dataSize: 4}) // since somebody set it: not lowered
	w.quiet(shared)
	w = newWorld(t, limits, "a", "b", "d")
	w.cluster(asks(1, lists("a", "b", "d"), has(3, 2)))
	w.crush(4, "a.local", "b.local", "c.local", "d.local")
	w.pools(shared, 1, map[string]int{dataSize: 3, metadataSize: 4})
	w.crush(2, "a.local", "b.local")
	w.Pass(lowerDelay)
	_, change := w.wants(shared, journal.ActionLowerCopies)
	if number := change.Numbers[metadataSize]; number.To != 3 {
		t.Errorf("asked for is %+v", change)
	}
}

// TestANumberThatEKCOSetAndNobodyReadYetIsNotHeldSinceBefore: it was set when the host had gone.
func TestANumberThatEKCOSetAndNobodyReadYetIsNotHeldSinceBefore(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.crush(3, "a", "b", "c")
	w.pools(pool, 1, map[string]int{poolSize: 2})
	rec, _ := w.wants(pool, journal.ActionRaiseCopies)
	w.crush(2, "a", "b")
	w.made(rec, journal.RookFacts{Generation: 2, Numbers: map[string]int{poolSize: 3}}, journal.OutcomeDone)
	w.Pass(lowerDelay)
	w.quiet(pool)
}

// TestAHostThatIsBackIsNotCountedAmongThoseThatAreGone when another one leaves.
func TestAHostThatIsBackIsNotCountedAmongThoseThatAreGone(t *testing.T) {
	w := shrunk(t, limits)
	w.crush(3, "a.local", "b.local", "c.local")
	w.crush(2, "a.local", "c.local")
	w.Pass(lowerDelay)
	if _, change := w.wants(pool, journal.ActionLowerCopies); !slices.Equal(change.Gone, []string{"b.local"}) {
		t.Errorf("gone are %q", change.Gone)
	}
}

// TestWhatWasLoweredInPartIsLoweredFurtherIfNoHostComesBack: the host that is gone for good counts
// until the copies are those of the hosts that are left.
func TestWhatWasLoweredInPartIsLoweredFurtherIfNoHostComesBack(t *testing.T) {
	five := Policy{MinCopies: 1, MaxCopies: 5, Pools: configured}
	begin := func(t *testing.T) (*world, *journal.ActionRecord) {
		w := newWorld(t, five, "a", "b", "c", "d")
		w.cluster(asks(1, lists("a", "b", "c", "d"), has(3, 2)))
		w.crush(5, "a.local", "b.local", "c.local", "d.local", "e.local")
		w.pools(pool, 1, map[string]int{poolSize: 5})
		w.crush(3, "a.local", "b.local", "c.local") // d keeps its Node
		w.Pass(lowerDelay)
		rec, change := w.wants(pool, journal.ActionLowerCopies)
		if change.Numbers[poolSize].To != 4 || !change.Partly {
			t.Fatalf("asked for is %+v", change)
		}
		return w, rec
	}
	four := map[string]int{poolSize: 4}

	w, rec := begin(t)
	w.pools(pool, 2, four) // is seen before the action ends
	w.made(rec, journal.RookFacts{Generation: 2, Numbers: four}, journal.OutcomeDone)
	w.quiet(pool)
	if rule, reason := w.refused(); rule != RuleHostMayReturn || !strings.Contains(reason, "host d.local has left") {
		t.Errorf("refused by %s: %s", rule, reason)
	}
	w.Pass(returnTimeout)
	rec, change := w.wants(pool, journal.ActionLowerCopies)
	if change.Numbers[poolSize].To != 3 || change.Partly || !slices.Equal(change.Gone, []string{"e.local"}) {
		t.Errorf("asked for is %+v", change)
	}
	three := map[string]int{poolSize: 3}
	w.made(rec, journal.RookFacts{Generation: 3, Numbers: three}, journal.OutcomeDone)
	w.pools(pool, 3, three)
	w.crush(2, "a.local", "b.local") // c keeps its Node, and e has been counted
	w.Pass(2 * returnTimeout)
	w.quiet(pool)
	if state := w.state(pool); state != InStep {
		t.Errorf("the pool is %s", state)
	}

	w, rec = begin(t)
	w.made(rec, journal.RookFacts{Generation: 2, Numbers: four}, journal.OutcomeDone)
	w.pools(pool, 2, four)
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf("d"), Payload: journal.NodeGone{}})
	if _, change = w.wants(pool, journal.ActionLowerCopies); change.Numbers[poolSize].To != 3 || len(change.Gone) != 2 {
		t.Errorf("without d, asked for is %+v", change)
	}

	for name, happens := range map[string]func(w *world, rec *journal.ActionRecord){
		"it was not lowered": func(w *world, rec *journal.ActionRecord) { w.End(rec, journal.OutcomeAbandoned) },
		"somebody set another number first": func(w *world, rec *journal.ActionRecord) {
			w.pools(pool, 2, map[string]int{poolSize: 3})
			w.End(rec, journal.OutcomeAbandoned)
		},
		"somebody set it after EKCO": func(w *world, rec *journal.ActionRecord) {
			w.made(rec, journal.RookFacts{Generation: 2, Numbers: four}, journal.OutcomeDone)
			w.pools(pool, 2, four)
			w.pools(pool, 3, map[string]int{poolSize: 5})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, rec := begin(t)
			happens(w, rec)
			w.pools(pool, 4, four) // somebody means that
			w.Pass(2 * returnTimeout)
			w.quiet(pool)
			if state := w.state(pool); state != InStep {
				t.Errorf("the pool is %s", state)
			}
		})
	}
}
