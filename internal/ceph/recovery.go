package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Stuck reports whether Ceph can do nothing more about lost OSDs: some pools need more copies than there are hosts (or
// OSDs) left, and every placement group is active with as many copies as possible, at least min_size.
//
// If Ceph is stuck, why explains it. Otherwise why names the remaining work, or is "" if no pool lacks hosts. Stuck
// counts the hosts of all CRUSH roots, so it may count too many, but never too few.
func Stuck(tree Tree, pools []Pool, pgs []PG, lost []int) (stuck bool, why string) {
	left := withoutLost(tree, lost)
	var lackingPools []Pool
	placesByPool := make(map[int]int, len(pools))
	for _, pool := range pools {
		places, known := left.placesFor(pool)
		if !known || places >= pool.Size {
			places = pool.Size
		} else {
			lackingPools = append(lackingPools, pool)
		}
		placesByPool[pool.ID] = places
	}
	if len(lackingPools) == 0 {
		return false, ""
	}
	why = describeLacking(lackingPools, placesByPool[lackingPools[0].ID])
	if busy := left.unsettled(pools, pgs, placesByPool); busy != "" {
		return false, why + "; " + busy
	}
	return true, fmt.Sprintf("%s; all %d placement groups are active with as many copies as possible, at least min_size", why, len(pgs))
}

// LackingCopies returns a line for each pool that needs more copies than there are hosts or OSDs left. It skips pools
// whose CRUSH rule EKCO cannot read.
func LackingCopies(tree Tree, pools []Pool, lost []int) (lines []string) {
	left := withoutLost(tree, lost)
	for _, pool := range pools {
		if places, known := left.placesFor(pool); known && places < pool.Size {
			lines = append(lines, fmt.Sprintf("pool %s keeps %d of its %d copies: %d %ss with OSDs are left", pool.Name, places, pool.Size, places, pool.Domain))
		}
	}
	return lines
}

// describeLacking returns a message about the hosts or OSDs that the first pool lacks.
func describeLacking(lackingPools []Pool, places int) string {
	others := ""
	if more := len(lackingPools) - 1; more > 0 {
		others = fmt.Sprintf(" (and %d more)", more)
	}
	return fmt.Sprintf("pool %s%s needs %d copies on different %ss; only %d are left", lackingPools[0].Name, others, lackingPools[0].Size, lackingPools[0].Domain, places)
}

// remaining are the OSDs that are not lost, by id. An OSD that is in but down still counts as a place for data.
type remaining map[int]OSD

// withoutLost returns the OSDs that are not lost.
func withoutLost(tree Tree, lost []int) remaining {
	osds := make(remaining)
	for _, osd := range tree.OSDs {
		if osd.Exists && !slices.Contains(lost, osd.ID) {
			osds[osd.ID] = osd
		}
	}
	return osds
}

// placesFor counts the places for copies of a pool. The number is unknown if EKCO does not know the pool's failure
// domain.
func (r remaining) placesFor(pool Pool) (count int, known bool) {
	places := make(map[string]bool)
	for _, osd := range r {
		switch {
		case !osd.In() || (pool.DeviceClass != "" && osd.DeviceClass != pool.DeviceClass):
		case pool.Domain == DomainHost:
			places[osd.Host] = true
		default:
			places[name(osd.ID)] = true
		}
	}
	return len(places), pool.Domain == DomainHost || pool.Domain == DomainOSD
}

// unsettled names a placement group that Ceph still works on, or a pool whose groups are not all known. Otherwise
// it returns "".
func (r remaining) unsettled(pools []Pool, pgs []PG, placesByPool map[int]int) string {
	if unknown := unknownGroups(pools, pgs); unknown != "" {
		return unknown
	}
	for _, pg := range pgs {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.ID == pg.Pool })
		if i < 0 {
			return fmt.Sprintf("the pool of placement group %s is unknown", pg.ID)
		}
		if !r.settled(pg, pools[i], placesByPool[pg.Pool]) {
			return fmt.Sprintf("placement group %s is %s on %s", pg.ID, pg.State, Names(pg.Acting...))
		}
	}
	return ""
}

// settled reports whether Ceph has nothing to do for a placement group. places is the number of places for its
// copies. An unknown state counts as work.
func (r remaining) settled(pg PG, pool Pool, places int) bool {
	if places >= pool.Size {
		return slices.Contains(cleanStates, pg.State)
	}
	states := strings.Split(pg.State, "+")
	if !slices.Contains(states, "active") || !slices.Contains(states, "undersized") {
		return false
	}
	isSettled := func(state string) bool { return slices.Contains(settledStates, state) }
	if slices.ContainsFunc(states, func(state string) bool { return !isSettled(state) }) {
		return false
	}
	copies := make(map[int]bool)
	for _, id := range pg.Acting {
		if !r[id].Up {
			return false // the mgr does not know yet that this OSD is lost
		}
		copies[id] = true
	}
	return len(copies) >= max(pool.MinSize, places)
}

// settledStates are the states of a placement group that has too few copies, and no place for more.
var settledStates = []string{"active", "undersized", "degraded", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}
