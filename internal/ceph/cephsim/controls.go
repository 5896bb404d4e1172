package cephsim

import (
	"errors"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/sim"
)

// AddHost adds OSDs with these ids, up and in, on a CRUSH host, and returns them. Without ids the host is
// empty.
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

// AddPool adds a pool with one placement group. Each host with OSDs that are up and in has a complete copy at once, up
// to the pool's size. If copies are missing, the health reports it, and OSDs that are down are not safe to destroy.
func (c *Cluster) AddPool(name string, size, minSize int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools = append(c.pools, ceph.Pool{
		ID: len(c.pools) + 1, Name: name, Size: size, MinSize: minSize, PGs: 1, Domain: ceph.DomainHost,
	})
}

// Fill sets the number of bytes in a pool.
func (c *Cluster) Fill(pool string, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored[pool] = bytes
}

// Shrink sets the size of an OSD in bytes.
func (c *Cluster) Shrink(id int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id].capacity = bytes
}

// SetCrushWeight sets the CRUSH weight of an OSD.
func (c *Cluster) SetCrushWeight(id int, weight float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id].Weight = weight
}

// SetPool sets the number of copies of a pool.
func (c *Cluster) SetPool(name string, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pools {
		if c.pools[i].Name == name {
			c.pools[i].Size = size
		}
	}
}

// ChangePool changes a pool like another client, if the pool exists.
func (c *Cluster) ChangePool(name string, change func(*ceph.Pool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pools {
		if c.pools[i].Name == name {
			change(&c.pools[i])
		}
	}
}

// LoseHost stops all OSDs of a host.
func (c *Cluster) LoseHost(host string) { c.power(host, false) }

// ReturnHost starts all OSDs of a host again.
func (c *Cluster) ReturnHost(host string) { c.power(host, true) }

// MoveOSD starts an OSD on another host, as if its disk was put into that machine. It stays in or out.
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

// StopOSD ends the process of an OSD. It ignores an unknown OSD.
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

// SetOnlyCopy sets whether these OSDs have the only copy of some data. It ignores unknown OSDs.
func (c *Cluster) SetOnlyCopy(holding bool, ids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if osd, ok := c.osds[id]; ok {
			osd.holding = holding
		}
	}
}

// SetDegraded sets whether data of these OSDs lacks copies. Other OSDs also have that data. SetDegraded ignores unknown
// OSDs.
func (c *Cluster) SetDegraded(degraded bool, osds ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range osds {
		if osd, ok := c.osds[id]; ok {
			osd.degraded = degraded
		}
	}
}

// SetHealth sets the health that Health returns, except for the mgr, the quorum and the placement groups.
func (c *Cluster) SetHealth(health ceph.Health) {
	sim.Set(&c.mu, &c.health, health)
}

// LoseMgr stops the mgr, or starts it again. Without a mgr, calls that need one take [CallTimeout] and fail.
func (c *Cluster) LoseMgr(lost bool) {
	sim.Set(&c.mu, &c.noMgr, lost)
}

// Hang ends the quorum, or restores it. Without a quorum, every call takes [CallTimeout] and fails.
func (c *Cluster) Hang(hanging bool) {
	sim.Set(&c.mu, &c.noQuorum, hanging)
}

// Refuse sets whether a method of [ceph.API] returns an error.
func (c *Cluster) Refuse(refusing bool, method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[method] = refusing
}

// errNoPod is the error of every call during an outage.
var errNoPod = errors.New("there is no running pod with the ceph program")

// Outage makes every call fail immediately, as if there were no pod to run ceph in, or ends that state.
func (c *Cluster) Outage(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = nil
	if down {
		c.broken = errNoPod
	}
}
