package ceph

import "slices"

// Options of a [Cluster]. The zero value is three hosts with one OSD each.
type Options struct {
	// Hosts says how many OSDs each CRUSH host has. Ids are given in the order of
	// the hosts' names.
	Hosts map[string]int
	// FirstOSD is the id of the first OSD; with 9 or more, ids have two digits.
	FirstOSD int
	// WithoutMgr starts no mgr.
	WithoutMgr bool
}

// placement is which OSDs are on which host.
type placement map[string][]int

func (o Options) place() placement {
	hosts := o.Hosts
	if len(hosts) == 0 {
		hosts = map[string]int{"node1": 1, "node2": 1, "node3": 1}
	}
	names := make([]string, 0, len(hosts))
	for name := range hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	placed, next := make(placement), o.FirstOSD
	for _, name := range names {
		for range hosts[name] {
			placed[name] = append(placed[name], next)
			next++
		}
	}
	return placed
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
