package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// WhyIncomplete returns the reason why a placement group is not settled or has too few complete copies, or "". Copies
// count only on OSDs that are up and on different hosts (or different OSDs, if the pool requires only that). A pool
// whose size is below copies needs only its size. An erasure-coded pool needs all parts. An unknown state counts as
// work in progress. Ceph must serve all pools except the unserved ones: these have too few copies to be served, but the
// copies can be complete.
func WhyIncomplete(tree Tree, pools []Pool, pgs []PG, copies int, unserved ...string) string {
	return incomplete(tree, pools, pgs, copies, func(pg PG, pool Pool) bool {
		return pg.isSettled(pool, slices.Contains(unserved, pool.Name))
	})
}

// WhyIncompleteServing is [WhyIncomplete], but it accepts placement groups that Ceph moves to other OSDs: until a copy
// has arrived, the OSDs that serve the placement group have complete copies.
func WhyIncompleteServing(tree Tree, pools []Pool, pgs []PG, copies int) string {
	return incomplete(tree, pools, pgs, copies, func(pg PG, pool Pool) bool {
		return pg.isSettled(pool, false) || pg.isMoving(pool)
	})
}

func incomplete(tree Tree, pools []Pool, pgs []PG, copies int, has func(PG, Pool) bool) string {
	here := withoutLost(tree, nil)
	if unknown := unknownGroups(pools, pgs); unknown != "" {
		return unknown
	}
	for _, pg := range pgs {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.ID == pg.Pool })
		if i < 0 {
			return fmt.Sprintf("the pool of placement group %s is unknown", pg.ID)
		}
		if !has(pg, pools[i]) {
			return fmt.Sprintf("placement group %s is %s", pg.ID, pg.State)
		}
		if pools[i].Erasure {
			continue
		}
		if there, want := here.countCopies(pg, pools[i]), min(copies, pools[i].Size); there < want {
			return fmt.Sprintf("placement group %s of pool %s has %d of %d copies on different %ss that are up", pg.ID, pools[i].Name, there, want, pools[i].place())
		}
	}
	return ""
}

// place returns the type of CRUSH bucket that has at most one copy.
func (p Pool) place() string {
	if p.Domain == DomainOSD {
		return "OSD"
	}
	return DomainHost
}

// unknownGroups returns a message if the mgr does not know all placement groups of a pool, or "".
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

// isSettled reports whether Ceph has nothing to recover: the placement group is clean, or it has too few copies, all of
// them complete. With unserved, it may be peered instead of active.
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

// moveStates are the states of a placement group that Ceph copies completely to other OSDs.
var moveStates = []string{"clean", "remapped", "backfill_wait", "backfilling"}

// countCopies counts the copies on different hosts that are up.
func (r remaining) countCopies(pg PG, pool Pool) int {
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
