package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Incomplete says why not every placement group is at rest with at least so many complete
// copies, each on another host (or another OSD, where the pool asks for no more), and on OSDs
// that are up; or "". Of a pool that keeps fewer copies all of them are needed, and of one with
// an erasure code all parts. What is not known to be rest counts as work. Ceph must serve all but
// the pools that are named: what it does not serve for want of copies can be complete as well.
func Incomplete(tree Tree, pools []Pool, pgs []PG, copies int, unserved ...string) string {
	return incomplete(tree, pools, pgs, copies, func(pg PG, pool Pool) bool {
		return pg.rests(pool, slices.Contains(unserved, pool.Name))
	})
}

// Lacking is [Incomplete] also while Ceph moves copies that are complete to other OSDs: until one
// has come there, the OSDs that serve the placement group are those that have them.
func Lacking(tree Tree, pools []Pool, pgs []PG, copies int) string {
	return incomplete(tree, pools, pgs, copies, func(pg PG, pool Pool) bool {
		return pg.rests(pool, false) || pg.moves(pool)
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
			return fmt.Sprintf("the pool of placement group %s is not known", pg.ID)
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

// place is what no two copies share.
func (p Pool) place() string {
	if p.Domain == DomainOSD {
		return "OSD"
	}
	return DomainHost
}

// unknownGroups says of which pool not all placement groups are known, or "".
func unknownGroups(pools []Pool, pgs []PG) string {
	known := make(map[int]int)
	for _, pg := range pgs {
		known[pg.Pool]++
	}
	for _, pool := range pools {
		if known[pool.ID] != pool.PGs {
			return fmt.Sprintf("of pool %s %d placement groups are known, and it has %d", pool.Name, known[pool.ID], pool.PGs)
		}
	}
	return ""
}

// rests reports whether the placement group is clean; or lacks copies, and those that it has are
// complete, since there is nothing to recover. With unserved it need not be active.
func (pg PG) rests(pool Pool, unserved bool) bool {
	if slices.Contains(cleanStates, pg.State) {
		return true
	}
	states := strings.Split(pg.State, "+")
	has := func(state string) bool { return slices.Contains(states, state) }
	served := has("active") || unserved && has("peered")
	atRest := !slices.ContainsFunc(states, func(state string) bool {
		return !slices.Contains(restStates, state) && !slices.Contains([]string{"clean", "peered"}, state)
	})
	lacks := has("undersized") && len(pg.Acting) < pool.Size && !pool.Erasure
	return atRest && served && (has("clean") || lacks)
}

// moves reports whether Ceph copies the placement group as a whole to where it shall be, and
// nothing is to be recovered of the copies that serve it.
func (pg PG) moves(pool Pool) bool {
	states := strings.Split(pg.State, "+")
	has := func(state string) bool { return slices.Contains(states, state) }
	known := !slices.ContainsFunc(states, func(state string) bool {
		return !slices.Contains(restStates, state) && !slices.Contains(moveStates, state)
	})
	lacks := has("undersized") && len(pg.Acting) < pool.Size
	return known && has("active") && has("remapped") && !pool.Erasure && (lacks || !has("undersized") && !has("degraded"))
}

// moveStates are those of a placement group that is copied as a whole.
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
