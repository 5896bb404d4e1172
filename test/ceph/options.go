package ceph

import (
	"maps"
	"slices"
)

// Options of a [Cluster]. The zero value is three hosts with one OSD each.
type Options struct {
	// Hosts says how many OSDs each CRUSH host has. Ids are given in the order of
	// the hosts' names.
	Hosts map[string]int
	// Spare says how many disks other hosts have, of which Ceph knows nothing before
	// [Cluster.AddHost]. Their OSDs have the ids after those of Hosts.
	Spare map[string]int
	// FirstOSD is the id of the first OSD; with 9 or more, ids have two digits.
	FirstOSD int
	// WithoutMgr starts no mgr.
	WithoutMgr bool
	// SeveralCopies leaves Ceph's default, by which no pool may have a single copy.
	SeveralCopies bool
}

// placement is which OSDs are on which host.
type placement map[string][]int

// place returns the OSDs of the hosts, and those that the spare ones may get.
func (o Options) place() (hosts, spare placement) {
	of := o.Hosts
	if len(of) == 0 {
		of = map[string]int{"node1": 1, "node2": 1, "node3": 1}
	}
	hosts, next := placeFrom(o.FirstOSD, of)
	spare, _ = placeFrom(next, o.Spare)
	return hosts, spare
}

// placeFrom gives ids from the first on, in the order of the hosts' names, and returns the next.
func placeFrom(first int, hosts map[string]int) (placed placement, next int) {
	placed, next = make(placement), first
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		for range hosts[name] {
			placed[name] = append(placed[name], next)
			next++
		}
	}
	return placed, next
}

// all returns the ids of all OSDs.
func (p placement) all() []int {
	var ids []int
	for _, onHost := range p {
		ids = append(ids, onHost...)
	}
	slices.Sort(ids)
	return ids
}
