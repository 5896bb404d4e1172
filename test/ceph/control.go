package ceph

import (
	"slices"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// Hosts returns the OSDs of each host, including stopped and added ones. Any goroutine may call it.
func (c *Cluster) Hosts() map[string][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	hosts := make(map[string][]int, len(c.hosts))
	for host, ids := range c.hosts {
		hosts[host] = slices.Clone(ids)
	}
	return hosts
}

// UUID returns the UUID with which an OSD was started.
func (c *Cluster) UUID(id int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uuids[id]
}

// StopHost kills all OSDs of the hosts, like a power failure, and waits until the monitor has marked them as down.
func (c *Cluster) StopHost(hosts ...string) {
	c.t.Helper()
	var lost []int
	for _, host := range hosts {
		for _, id := range c.Hosts()[host] {
			c.kill(id)
			lost = append(lost, id)
		}
	}
	c.waitDown(lost...)
}

// kill kills an OSD if it runs.
func (c *Cluster) kill(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if osd, running := c.osds[id]; running {
		osd.Kill()
		delete(c.osds, id)
	}
}

// StartHost starts the OSDs of a stopped host again. They use the data on disk. Memory stores write their data only at
// a clean end, so they start empty, and the other OSDs fill them.
func (c *Cluster) StartHost(host string) {
	c.t.Helper()
	c.startOSDs(host)
	c.waitUp(c.hosts[host]...)
}

// StopOSD kills one OSD, like a power failure, and waits until the monitor has marked it as down.
func (c *Cluster) StopOSD(id int) {
	c.t.Helper()
	c.kill(id)
	c.waitDown(id)
}

// MoveOSD starts a stopped OSD on another host, as if its disk was moved, and waits until it is up there.
func (c *Cluster) MoveOSD(id int, host string) {
	c.t.Helper()
	for from, ids := range c.hosts {
		c.hosts[from] = slices.DeleteFunc(ids, func(other int) bool { return other == id })
	}
	c.hosts[host] = append(c.hosts[host], id)
	c.startOSD(id, host)
	c.waitUp(id)
}

// StopMgr ends the only mgr and tells the monitor at once, which would otherwise take 30 s to notice. The monitor still
// answers, but commands that need a mgr do not.
func (c *Cluster) StopMgr() {
	c.t.Helper()
	c.mgr.Kill()
	c.mgr = nil
	c.Ceph("mgr", "fail", "x")
	c.Eventually(await.HangTimeout, "no mgr is active", func() bool { return !c.mgrActive() })
}

// StartMgr starts the mgr, and waits until it is active.
func (c *Cluster) StartMgr() {
	c.t.Helper()
	c.mgr = child.Start(c.t, "ceph-mgr", "--conf", c.conf, "-i", "x", "-f")
	c.waitMgr()
}

// StopMon ends the only monitor, so that there is no quorum and Ceph does not answer.
func (c *Cluster) StopMon() {
	c.t.Helper()
	c.mon.Kill()
	c.mon = nil
}

// StartMon starts the monitor. Commands wait for it automatically.
func (c *Cluster) StartMon() {
	c.t.Helper()
	c.mon = child.Start(c.t, "ceph-mon", "--conf", c.conf, "-i", "a", "-f")
}
