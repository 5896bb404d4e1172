package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Incomplete returns why not every placement group is settled with at least this many complete copies on OSDs
// that are up, each on another host (or on another OSD, if the pool requires no more), or "". A pool with fewer
// copies needs all of them, and an erasure-coded pool all parts. An unknown state counts as work in progress.
// Ceph must serve all pools except the unserved ones: a pool that is not served because it has too few copies
// can still have complete ones.
func Incomplete(tree Tree, pools []Pool, pgs []PG, copies int, unserved ...string) string {
	return incomplete(tree, pools, pgs, copies, func(pg PG, pool Pool) bool {
		return pg.isSettled(pool, slices.Contains(unserved, pool.Name))
	})
}

// IncompleteServing is [Incomplete], but allows Ceph to move complete copies to other OSDs: until a copy has
// arrived, the OSDs that serve the placement group have complete ones.
func IncompleteServing(tree Tree, pools []Pool, pgs []PG, copies int) string {
	return incomplete(tree, pools, pgs, copies, func(pg PG, pool Pool) bool {
		return pg.isSettled(pool, false) || pg.isMoving(pool)
	})
}

func incomplete(tree Tree, pools []Pool, pgs []PG, copies int, has func(PG, Pool) bool) string {
	here := present(tree, nil)
	if unknown := unknownGroups(pools, pgs); unknown != "" {
		return unknown
	}
	for _, pg := range pgs {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.ID == pg.Pool })
		if i < 0 {
			return fmt.Sprintf("the pool of placement group %sis unknown", pg.ID)
		}
		if !has(pg, pools[i]) {
			return fmt.Sprintf("placement group %s is %s", pg.ID, pg.State)
		}
		if pools[i].Erasure {
			continue
		}
		if there, want := here.copiesOf(pg, pools[i]), min(copies, pools[i].Size); there < want {
			return fmt.Sprintf("placement group %s of pool %s has %d of %d copies on different %ss that are up", pg.ID, pools[i].Name, there, want, pools[i].place())
		}
	}
	return ""
}

// place is the type of CRUSH bucket that no two copies share.
func (p Pool) place() string {
	if p.Domain == DomainOSD {
		return "OSD"
	}
	return DomainHost
}

// unknownGroups names a pool of which the mgr does not know all placement groups, or returns "".
func unknownGroups(pools []Pool, pgs []PG) string {
	known := make(map[int]int)
	for _, pg := range pgs {
		known[pg.Pool]++
	}
	for _, pool := range pools {
		if known[pool.ID] != pool.PGs {
			return fmt.Sprintf("pool %s has %d placement groups, but the mgr knows %d", pool.Name, pool.PGs, known[pool.ID])
		}
	}
	return ""
}

// isSettled reports whether the placement group is clean, or has too few copies but all of them complete: Ceph
// has nothing to recover. With unserved it need not be active.
func (pg PG) isSettled(pool Pool, unserved bool) bool {
	if slices.Contains(cleanStates, pg.State) {
		return true
	}
	states := strings.Split(pg.State, "+")
	has := func(state string) bool { return slices.Contains(states, state) }
	served := has("active") || unserved && has("peered")
	atRest := !slices.ContainsFunc(states, func(state string) bool {
		return !slices.Contains(settledStates, state) && !slices.Contains([]string{"clean", "peered"}, state)
	})
	lacks := has("undersized") && len(pg.Acting) < pool.Size && !pool.Erasure
	return atRest && served && (has("clean") || lacks)
}

// isMoving reports whether Ceph copies the whole placement group to other OSDs, and the copies that serve it
// need no recovery.
func (pg PG) isMoving(pool Pool) bool {
	states := strings.Split(pg.State, "+")
	has := func(state string) bool { return slices.Contains(states, state) }
	known := !slices.ContainsFunc(states, func(state string) bool {
		return !slices.Contains(settledStates, state) && !slices.Contains(moveStates, state)
	})
	lacks := has("undersized") && len(pg.Acting) < pool.Size
	return known && has("active") && has("remapped") && !pool.Erasure && (lacks || !has("undersized") && !has("degraded"))
}

// moveStates are the states of a placement group that Ceph copies as a whole.
var moveStates = []string{"clean", "remapped", "backfill_wait", "backfilling"}

// copiesOf counts the copies on different hosts that are up.
func (r remaining) copiesOf(pg PG, pool Pool) int {
	places := make(map[string]bool)
	for _, id := range pg.Acting {
		osd, there := r[id]
		switch {
		case !there || !osd.Up:
		case pool.Domain == DomainOSD:
			places[name(id)] = true
		case osd.Host != "":
			places[osd.Host] = true
		}
	}
	return len(places)
}
