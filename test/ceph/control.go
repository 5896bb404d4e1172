package ceph

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/test/child"
)

// Hosts returns which OSDs the hosts were started with, or got since. Any goroutine may call
// it.
func (c *Cluster) Hosts() map[string][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	hosts := make(map[string][]int, len(c.hosts))
	for host, ids := range c.hosts {
		hosts[host] = slices.Clone(ids)
	}
	return hosts
}

// UUID returns the UUID an OSD was started with.
func (c *Cluster) UUID(id int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uuids[id]
}

// StopHost ends all OSDs of hosts as a loss of power does, and waits until the
// monitor counts them as down.
func (c *Cluster) StopHost(hosts ...string) {
	c.t.Helper()
	expected := c.status().OSDMap.Up
	for _, host := range hosts {
		for _, id := range c.Hosts()[host] {
			if c.kill(id) {
				expected--
			}
		}
	}
	c.Eventually(patience, fmt.Sprintf("the OSDs of %v are down", hosts), func() bool {
		return c.status().OSDMap.Up <= expected
	})
}

// kill ends an OSD, and reports whether it ran.
func (c *Cluster) kill(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	osd, running := c.osds[id]
	if running {
		osd.Kill()
		delete(c.osds, id)
	}
	return running
}

// StartHost starts the OSDs of a stopped host again, with the data they had on
// disk: memory stores write theirs only on a clean end, so they come back with
// none and are filled by the others.
func (c *Cluster) StartHost(host string) {
	c.t.Helper()
	expected := c.status().OSDMap.Up + len(c.hosts[host])
	c.startOSDs(host)
	c.waitUp(expected, false)
}

// StopOSD ends one OSD as a loss of power does, and waits until the monitor counts
// it as down.
func (c *Cluster) StopOSD(id int) {
	c.t.Helper()
	expected := c.status().OSDMap.Up - 1
	c.kill(id)
	c.Eventually(patience, fmt.Sprintf("osd.%d is down", id), func() bool { return c.status().OSDMap.Up <= expected })
}

// MoveOSD starts a stopped OSD on another host, as when its disk was put into that
// machine, and waits until it is up there.
func (c *Cluster) MoveOSD(id int, host string) {
	c.t.Helper()
	for from, ids := range c.hosts {
		c.hosts[from] = slices.DeleteFunc(ids, func(other int) bool { return other == id })
	}
	c.hosts[host] = append(c.hosts[host], id)
	expected := c.status().OSDMap.Up + 1
	c.startOSD(id, host)
	c.waitUp(expected, false)
}

// StopMgr ends the only mgr and has the monitor know at once, which otherwise
// takes 30 s. The monitor answers, and nothing that needs a mgr does.
func (c *Cluster) StopMgr() {
	c.t.Helper()
	c.mgr.Kill()
	c.mgr = nil
	c.Ceph("mgr", "fail", "x")
	c.Eventually(patience, "no mgr is active", func() bool { return !c.status().MgrMap.Available })
}

// StartMgr starts the mgr, and waits until it is active.
func (c *Cluster) StartMgr() {
	c.t.Helper()
	c.mgr = child.Start(c.t, "ceph-mgr", "--conf", c.conf, "-i", "x", "-f")
	c.Eventually(patience, "the mgr is active", func() bool { return c.status().MgrMap.Available })
}

// StopMon ends the only monitor, so that there is no quorum. Nothing answers.
func (c *Cluster) StopMon() {
	c.t.Helper()
	c.mon.Kill()
	c.mon = nil
}

// StartMon starts the monitor. Commands wait for it by themselves.
func (c *Cluster) StartMon() {
	c.t.Helper()
	c.mon = child.Start(c.t, "ceph-mon", "--conf", c.conf, "-i", "a", "-f")
}
