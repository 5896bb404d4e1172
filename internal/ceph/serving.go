package ceph

import "slices"

// Serving returns the names of the hosts with at least one OSD that is up and in, sorted. An
// OSD that is in no host, or that only the CRUSH map still has, serves nowhere.
func (t Tree) Serving() []string {
	var hosts []string
	for _, osd := range t.OSDs {
		if osd.Exists && osd.Up && osd.In() && !osd.Stray && osd.Host != "" {
			hosts = append(hosts, osd.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
