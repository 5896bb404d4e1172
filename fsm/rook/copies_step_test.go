package rook

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// raises makes the raises of a pool that are asked for, until nothing is, and returns the last
// number.
func (w *world) raises(size int, generation int64) int {
	w.T.Helper()
	for range 5 {
		rec, change := w.asked(pool, journal.ActionRaiseCopies)
		if rec == nil {
			break
		}
		if to := change.Numbers[poolSize].To; to != size+1 {
			w.T.Errorf("from %d copies %d are asked for", size, to)
		}
		size++
		generation++
		facts := journal.RookFacts{Generation: generation, Numbers: map[string]int{poolSize: size}}
		w.made(rec, facts, journal.OutcomeDone)
		w.Observe(Machine, pool, facts)
		w.Pass(time.Minute)
	}
	return size
}

// TestCopiesAreRaisedOneAtATime: more at once Ceph would not serve until it has made them.
func TestCopiesAreRaisedOneAtATime(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(3)
	w.pools(pool, 1, map[string]int{poolSize: 1})
	if got := w.raises(1, 1); got != 3 {
		t.Errorf("it has %d copies", got)
	}
}

// TestWhoTakesSeveralCopiesAwayAgainAndAgainIsNotFought: EKCO's own steps are no fight.
func TestWhoTakesSeveralCopiesAwayAgainAndAgainIsNotFought(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(3)
	for i := range int64(2) {
		w.pools(pool, 1+10*i, map[string]int{poolSize: 1})
		if got := w.raises(1, 1+10*i); got != 3 {
			t.Errorf("it has %d copies", got)
		}
	}
	w.pools(pool, 30, map[string]int{poolSize: 1})
	if rule, reason := w.refused(); rule != fsm.RuleContested {
		t.Errorf("refused by %s: %s", rule, reason)
	}
}

// TestACopyThatCephKeepsAlreadyIsNoStep: Rook would take it away on the way.
func TestACopyThatCephKeepsAlreadyIsNoStep(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, lists(), has(3, 2)))
	w.hosts(3, keeps("replicapool", 3))
	w.pools(pool, 1, map[string]int{poolSize: 1})
	if _, change := w.wants(pool, journal.ActionRaiseCopies); change.Numbers[poolSize].To != 3 {
		t.Errorf("asked for is %+v", change)
	}
}
