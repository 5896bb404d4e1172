package ceph

import "github.com/replicatedhq/ekco/journal"

// Facts returns the facts by which EKCO judges the pool.
func (p Pool) Facts() journal.CephPool {
	return journal.CephPool{
		Name: p.Name, Size: p.Size, MinSize: p.MinSize, PGMin: p.PGMin, PGs: p.PGs,
		Bound:  p.Erasure || p.DeviceClass != "" || p.Domain != DomainHost && p.Domain != DomainOSD,
		OnOSDs: p.Domain == DomainOSD,
	}
}
