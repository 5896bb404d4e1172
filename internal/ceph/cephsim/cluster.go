package cephsim

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/sim"
)

// CallTimeout is the duration of a call that Ceph does not answer.
const CallTimeout = ceph.DefaultTimeout + ceph.DefaultGrace

// FSID is the FSID of every simulated cluster.
const FSID = "00000000-0000-4000-8000-00000000f51d"

// Cluster is a simulated Ceph. Make one with [New]. Its methods are safe for
// concurrent use.
//
// The names of its effects are "osd-down 3", "osd-out 3" and "osd-in 3", several
// ids separated by commas, "osd-reweight 3", "osd-purge 3", "crush-rm node1",
// "pool-set POOL SETTING VALUE", "config-set NAME" and "config-rm NAME".
type Cluster struct {
	sim.Controls

	mu    sync.Mutex
	hosts map[string]bool
	osds  map[int]*osd
	pools []ceph.Pool
	// stored is the number of bytes in each pool, by its name.
	stored map[string]int64
	uuids  int
	// options are the options of the monitors, by their names.
	options map[string]ceph.Option
	health  ceph.Health
	calls   map[string]int

	noMgr, noQuorum bool
	broken          error
	// refused are the methods of [ceph.API] that return an error.
	refused map[string]bool
}

type osd struct {
	ceph.OSD
	// holding is true while the OSD has the only copy of some data.
	holding bool
	// degraded is true while some data of the OSD lacks copies.
	degraded bool
	// capacity is the OSD's size in bytes, 0 for the default.
	capacity int64
}

// New returns a healthy cluster without OSDs. It answers immediately.
func New() *Cluster {
	return &Cluster{
		Controls: sim.NewControls(ceph.ErrUnavailable), hosts: make(map[string]bool), osds: make(map[int]*osd),
		calls: make(map[string]int), stored: make(map[string]int64), refused: make(map[string]bool), health: ceph.Health{Status: ceph.HealthOK},
	}
}

// Calls returns the number of calls of a method of [ceph.API], answered or not.
func (c *Cluster) Calls(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

// Snapshot returns the tree, even while Ceph does not answer.
func (c *Cluster) Snapshot() ceph.Tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tree()
}

// tree returns the tree. The caller must hold mu.
func (c *Cluster) tree() ceph.Tree {
	tree := ceph.Tree{FSID: FSID}
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		tree.Hosts = append(tree.Hosts, ceph.Host{Name: name, OSDs: c.on(name)})
	}
	for _, id := range slices.Sorted(maps.Keys(c.osds)) {
		tree.OSDs = append(tree.OSDs, c.osds[id].OSD)
	}
	return tree
}

// on returns the OSDs of a host. The caller must hold mu.
func (c *Cluster) on(host string) []int {
	var ids []int
	for id, osd := range c.osds {
		if osd.Host == host {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// newUUID returns a UUID that no other OSD has. The caller must hold mu.
func (c *Cluster) newUUID() string {
	c.uuids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", c.uuids)
}
