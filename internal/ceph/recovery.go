package ceph

import (
	"fmt"
	"slices"
	"strings"
)

// Stuck reports whether Ceph has done all it can about the loss of OSDs, and
// waits for what it does not get: there are pools for which fewer hosts are left
// than they want copies, and every placement group is active with as many copies
// as there are hosts, and with at least min_size of them. Then why says so.
//
// Where it is not stuck, why says what is left to do, or nothing if no pool lacks
// hosts. The hosts of all roots are counted, so that too many may count as left,
// but never too few.
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
	return true, fmt.Sprintf("%s; all %d placement groups are active with as many copies as there can be, and at least min_size", why, len(pgs))
}

// Short names the pools that have fewer copies than they want as long as no place comes in the
// stead of the lost OSDs, a line each. Pools whose rule EKCO does not read are not among them.
func Short(tree Tree, pools []Pool, lost []int) (lines []string) {
	left := present(tree, lost)
	for _, pool := range pools {
		if places, known := left.placesFor(pool); known && places < pool.Size {
			lines = append(lines, fmt.Sprintf("pool %s keeps %d of its %d copies: %d %ss with OSDs are left", pool.Name, places, pool.Size, places, pool.Domain))
		}
	}
	return lines
}

// lacking says that places are missing, in the words of the first pool.
func lacking(short []Pool, places int) string {
	others := ""
	if more := len(short) - 1; more > 0 {
		others = fmt.Sprintf(" (and %d more)", more)
	}
	return fmt.Sprintf("pool %s%s wants %d copies on different %ss, with only %d left", short[0].Name, others, short[0].Size, short[0].Domain, places)
}

// remaining are the OSDs that are not lost, by id, of which those that take data, or
// will when they run again, count as places for it.
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

// placesFor counts the places for copies of a pool. It is not known how many there
// are where copies are spread over what EKCO does not read.
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

// unsettled says of a placement group that Ceph has something to do about it, or
// that not all are known; empty if neither is so.
func (r remaining) unsettled(pools []Pool, pgs []PG, room map[int]int) string {
	if unknown := unknownGroups(pools, pgs); unknown != "" {
		return unknown
	}
	for _, pg := range pgs {
		i := slices.IndexFunc(pools, func(p Pool) bool { return p.ID == pg.Pool })
		if i < 0 {
			return fmt.Sprintf("the pool of placement group %s is not known", pg.ID)
		}
		if !r.settled(pg, pools[i], room[pg.Pool]) {
			return fmt.Sprintf("placement group %s is %s on %s", pg.ID, pg.State, Names(pg.Acting...))
		}
	}
	return ""
}

// settled reports whether nothing is to be done for a placement group with so
// many places for its copies. What is not known to be rest is work.
func (r remaining) settled(pg PG, pool Pool, places int) bool {
	if places >= pool.Size {
		return slices.Contains(cleanStates, pg.State)
	}
	states := strings.Split(pg.State, "+")
	if !slices.Contains(states, "active") || !slices.Contains(states, "undersized") {
		return false
	}
	atRest := func(state string) bool { return slices.Contains(restStates, state) }
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

// restStates are those of a placement group that lacks copies and can have no
// more of them.
var restStates = []string{"active", "undersized", "degraded", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}
