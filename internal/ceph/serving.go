package ceph

import "slices"

// Serving returns the sorted names of the hosts with at least one OSD that is up, is in and has a CRUSH weight
// above 0. An OSD without a host, or only in the CRUSH map, does not count.
func (t Tree) Serving() []string { return t.hostsWith(OSD.serves) }

// HostsWithOSDs returns the sorted names of the hosts with at least one OSD, running or not.
func (t Tree) HostsWithOSDs() []string {
	return t.hostsWith(func(o OSD) bool { return o.Exists && !o.Stray })
}

func (o OSD) serves() bool { return o.Exists && o.Up && o.In() && o.Weight > 0 && !o.Stray }

func (t Tree) hostsWith(osd func(OSD) bool) []string {
	var hosts []string
	for _, o := range t.OSDs {
		if o.Host != "" && osd(o) {
			hosts = append(hosts, o.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
