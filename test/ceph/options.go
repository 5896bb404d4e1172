package ceph

import (
	"maps"
	"slices"
)

// Options configures a [Cluster]. The zero value means three hosts with one OSD each.
type Options struct {
	// Hosts has the number of OSDs of each CRUSH host. Ids are assigned in the order of the hosts' names.
	Hosts map[string]int
	// Spare has the number of disks of other hosts, which Ceph does not know before [Cluster.AddHost]. The ids of their
	// OSDs follow the ids for Hosts.
	Spare map[string]int
	// FirstOSD is the id of the first OSD. With 9 or more, ids have two digits.
	FirstOSD int
	// WithoutMgr starts no mgr.
	WithoutMgr bool
	// SeveralCopies keeps Ceph's default that no pool may have a single copy.
	SeveralCopies bool
}

// placement maps each host to its OSDs.
type placement map[string][]int

// place returns the OSDs of the hosts, and the OSDs that the spare hosts may get.
func (o Options) place() (hosts, spare placement) {
	of := o.Hosts
	if len(of) == 0 {
		of = map[string]int{"node1": 1, "node2": 1, "node3": 1}
	}
	hosts, next := placeFrom(o.FirstOSD, of)
	spare, _ = placeFrom(next, o.Spare)
	return hosts, spare
}

// placeFrom assigns ids beginning with first, in the order of the hosts' names, and returns the next id.
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
