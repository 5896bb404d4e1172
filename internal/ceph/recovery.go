package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Stuck reports whether Ceph has done all it can about the loss of OSDs: some pools have fewer hosts left than
// they need copies, and every placement group is active with as many copies as there are hosts, and at least
// min_size. Then why says so.
//
// If Ceph is not stuck, why is what is left to do, or empty if no pool lacks hosts. The hosts of all roots
// count, so the count may be too high, but never too low.
func Stuck(tree Tree, pools []Pool, pgs []PG, lost []int) (stuck bool, why string) {
	left := present(tree, lost)
	var short []Pool
	room := make(map[int]int, len(pools))
	for _, pool := range pools {
		places, known := left.placesFor(pool)
		if !known || places >= pool.Size {
			places = pool.Size
		} else {
			short = append(short, pool)
		}
		room[pool.ID] = places
	}
	if len(short) == 0 {
		return false, ""
	}
	why = lacking(short, room[short[0].ID])
	if busy := left.unsettled(pools, pgs, room); busy != "" {
		return false, why + "; " + busy
	}
	return true, fmt.Sprintf("%s; all %d placement groups are active with as many copies as possible, at least min_size", why, len(pgs))
}

// LackingCopies returns a line for each pool that has fewer copies than it needs until other hosts or OSDs replace the
// lost ones. It skips pools whose rule EKCO cannot read.
func LackingCopies(tree Tree, pools []Pool, lost []int) (lines []string) {
	left := present(tree, lost)
	for _, pool := range pools {
		if places, known := left.placesFor(pool); known && places < pool.Size {
			lines = append(lines, fmt.Sprintf("pool %s keeps %d of its %d copies: %d %ss with OSDs are left", pool.Name, places, pool.Size, places, pool.Domain))
		}
	}
	return lines
}

// lacking returns that hosts or OSDs are missing, for the first pool.
func lacking(short []Pool, places int) string {
	others := ""
	if more := len(short) - 1; more > 0 {
		others = fmt.Sprintf(" (and %d more)", more)
	}
	return fmt.Sprintf("pool %s%s needs %d copies on different %ss; only %d are left", short[0].Name, others, short[0].Size, short[0].Domain, places)
}

// remaining are the OSDs that are not lost, by id. Those that take data, or will when they run again, count as
// places for it.
type remaining map[int]OSD

// present returns the OSDs that are not lost.
func present(tree Tree, lost []int) remaining {
	osds := make(remaining)
	for _, osd := range tree.OSDs {
		if osd.Exists && !slices.Contains(lost, osd.ID) {
			osds[osd.ID] = osd
		}
	}
	return osds
}

// placesFor counts the places for copies of a pool. The number is unknown if EKCO cannot read what the copies
// are spread over.
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

// unsettled names a placement group that Ceph still has to work on, or a pool of which not all groups are
// known; or returns "".
func (r remaining) unsettled(pools []Pool, pgs []PG, room map[int]int) string {
	if unknown := unknownGroups(pools, pgs); unknown != "" {
		return unknown
	}
	for _, pg := range pgs {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.ID == pg.Pool })
		if i < 0 {
			return fmt.Sprintf("the pool of placement group %s is unknown", pg.ID)
		}
		if !r.settled(pg, pools[i], room[pg.Pool]) {
			return fmt.Sprintf("placement group %s is %s on %s", pg.ID, pg.State, Names(pg.Acting...))
		}
	}
	return ""
}

// settled reports whether Ceph has nothing to do for a placement group with so many places for its copies. An
// unknown state counts as work.
func (r remaining) settled(pg PG, pool Pool, places int) bool {
	if places >= pool.Size {
		return slices.Contains(cleanStates, pg.State)
	}
	states := strings.Split(pg.State, "+")
	if !slices.Contains(states, "active") || !slices.Contains(states, "undersized") {
		return false
	}
	atRest := func(state string) bool { return slices.Contains(settledStates, state) }
	if slices.ContainsFunc(states, func(state string) bool { return !atRest(state) }) {
		return false
	}
	copies := make(map[int]bool)
	for _, id := range pg.Acting {
		if !r[id].Up {
			return false // the mgr has not heard of a loss
		}
		copies[id] = true
	}
	return len(copies) >= max(pool.MinSize, places)
}

// settledStates are the states of a placement group that has too few copies and can get no more.
var settledStates = []string{"active", "undersized", "degraded", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}
