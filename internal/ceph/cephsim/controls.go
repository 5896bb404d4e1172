package cephsim

import (
	"errors"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/sim"
)

// AddHost adds OSDs with those ids, up and in, on a CRUSH host, and returns
// them. Without ids the host is empty.
func (c *Cluster) AddHost(host string, ids ...int) []ceph.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts[host] = true
	refs := make([]ceph.Ref, len(ids))
	for i, id := range ids {
		refs[i] = ceph.Ref{ID: id, UUID: c.newUUID()}
		c.osds[id] = &osd{OSD: ceph.OSD{
			Ref: refs[i], Host: host, Exists: true, Up: true, Reweight: 1, Weight: 1, DeviceClass: "hdd",
		}}
	}
	return refs
}

// AddPool adds a pool with one placement group, whose copies are on different
// hosts. It has as many of them as there are hosts with OSDs that are up and in,
// at once and in whole; what it lacks is in the health and makes OSDs that are
// down unsafe to destroy.
func (c *Cluster) AddPool(name string, size, minSize int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools = append(c.pools, ceph.Pool{
		ID: len(c.pools) + 1, Name: name, Size: size, MinSize: minSize, PGs: 1, Domain: ceph.DomainHost,
	})
}

// Fill says how many bytes a pool holds.
func (c *Cluster) Fill(pool string, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored[pool] = bytes
}

// Shrink says how many bytes an OSD can hold.
func (c *Cluster) Shrink(id int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id].capacity = bytes
}

// Reweigh sets how much of the data CRUSH gives an OSD.
func (c *Cluster) Reweigh(id int, weight float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id].Weight = weight
}

// SetPool has a pool keep so many copies.
func (c *Cluster) SetPool(name string, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pools {
		if c.pools[i].Name == name {
			c.pools[i].Size = size
		}
	}
}

// ChangePool has somebody else change a pool, if there is one of that name.
func (c *Cluster) ChangePool(name string, change func(*ceph.Pool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pools {
		if c.pools[i].Name == name {
			change(&c.pools[i])
		}
	}
}

// LoseHost takes all OSDs of a host down.
func (c *Cluster) LoseHost(host string) { c.power(host, false) }

// ReturnHost brings them up again.
func (c *Cluster) ReturnHost(host string) { c.power(host, true) }

// MoveOSD starts an OSD on another host, as when its disk was put into that
// machine. Whether it is in stays as it was.
func (c *Cluster) MoveOSD(id int, host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts[host] = true
	c.osds[id].Host, c.osds[id].Up = host, true
}

func (c *Cluster) power(host string, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.on(host) {
		c.osds[id].Up = up && c.osds[id].Exists
	}
}

// StopOSD ends the process of an OSD, and StartOSD starts it. Unknown ones are
// ignored.
func (c *Cluster) StopOSD(id int) { c.run(id, false) }

// StartOSD is the reverse of StopOSD.
func (c *Cluster) StartOSD(id int) { c.run(id, true) }

func (c *Cluster) run(id int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if osd, ok := c.osds[id]; ok {
		osd.Up = up && osd.Exists
	}
}

// RemoveOSD does what `ceph osd rm` does: the CRUSH map keeps the OSD.
func (c *Cluster) RemoveOSD(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id].Exists, c.osds[id].Up, c.osds[id].Reweight, c.osds[id].UUID = false, false, 0, ""
}

// Hold says whether data would be lost with these OSDs. Unknown ones are ignored.
func (c *Cluster) Hold(holding bool, ids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if osd, ok := c.osds[id]; ok {
			osd.holding = holding
		}
	}
}

// Degrade says whether data of these OSDs is not yet copied as often as it should
// be; other OSDs have it. Unknown ones are ignored.
func (c *Cluster) Degrade(degraded bool, ids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if osd, ok := c.osds[id]; ok {
			osd.degraded = degraded
		}
	}
}

// SetHealth sets what Health answers, other than what is known otherwise: the
// mgr, the quorum and the placement groups.
func (c *Cluster) SetHealth(health ceph.Health) {
	sim.Set(&c.mu, &c.health, health)
}

// LoseMgr takes the mgr away, or brings it back: calls that need one take
// [CallTimeout] and fail.
func (c *Cluster) LoseMgr(lost bool) {
	sim.Set(&c.mu, &c.noMgr, lost)
}

// Hang takes the quorum away, or brings it back: every call takes
// [CallTimeout] and fails.
func (c *Cluster) Hang(hanging bool) {
	sim.Set(&c.mu, &c.noQuorum, hanging)
}

// Refuse makes Ceph answer calls of a method of [ceph.API] with an error, or not
// any more.
func (c *Cluster) Refuse(refusing bool, method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[method] = refusing
}

// errNoPod is what makes Ceph unavailable by default.
var errNoPod = errors.New("there is no running pod with the ceph program")

// Outage makes every call fail at once, as without a pod to run ceph in, or
// ends that.
func (c *Cluster) Outage(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = nil
	if down {
		c.broken = errNoPod
	}
}
