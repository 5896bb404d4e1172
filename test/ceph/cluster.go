package ceph

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/artifacts"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/loopback"
)

// Cluster is a running Ceph. Only one goroutine may use it at a time, except for methods that any goroutine may call.
type Cluster struct {
	t         testing.TB
	dir, conf string
	fsid      string
	// network is the prefix of its addresses, such as "127.64.0.".
	network string

	// mu guards the fields below, which methods for any goroutine use.
	mu           sync.Mutex
	hosts, spare placement
	uuids        map[int]string
	mon, mgr     *child.Process
	osds         map[int]*child.Process
	// mons is the number of monitors so far. The next monitor gets the next address.
	mons int
	// more has the added daemons by name.
	more map[string]*child.Process
	// idle has the sessions that no goroutine uses now.
	idle []*session
}

// Start starts a cluster, and returns when every OSD is up and the mgr is active, unless the options exclude the mgr.
// Everything ends with the test.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	began := time.Now()
	c := &Cluster{
		t: t, dir: tempDir(t), network: loopback.Network(), mons: 1,
		uuids: make(map[int]string), osds: make(map[int]*child.Process), more: make(map[string]*child.Process),
	}
	t.Cleanup(c.endSessions)
	c.hosts, c.spare = options.place()
	c.writeConfig(options)
	c.writeKeyrings(slices.Concat(c.hosts.all(), c.spare.all()))
	c.makeMon()
	c.StartMon()
	c.withoutOwnPool()
	if !options.WithoutMgr {
		c.mgr = child.Start(c.t, "ceph-mgr", "--conf", c.conf, "-i", "x", "-f")
	}
	c.createOSDs()
	c.makeOSDs()
	for host := range c.hosts {
		c.startOSDs(host)
	}
	c.waitUp(slices.Collect(maps.Keys(c.uuids))...)
	if !options.WithoutMgr {
		c.waitMgr()
	}
	t.Logf("Ceph with %d OSDs on %d hosts is ready after %s", len(c.uuids), len(c.hosts), time.Since(began).Round(time.Millisecond))
	return c
}

// withoutOwnPool prevents the mgr from creating a pool with two copies. The pool would be lost together with the two
// hosts that have the copies.
func (c *Cluster) withoutOwnPool() {
	c.t.Helper()
	// Until a mgr runs, the monitor accepts the name of the mgr's option only with --force.
	c.Ceph("config", "set", "mgr", "mgr/devicehealth/enable_monitoring", "false", "--force")
}

// tempDir creates a directory without a comma in its name, because Ceph takes a comma for the end of a path. Names from
// t.TempDir can have one.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ceph-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			artifacts.KeepFiles(t, dir, "*.log")
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return dir
}

// makeMon creates the data directory of the first monitor.
func (c *Cluster) makeMon() {
	c.t.Helper()
	monmap := filepath.Join(c.dir, "monmap")
	c.must("monmaptool", "--create", "--fsid", c.fsid, "--addv", "a", c.monAddress(1),
		"--enable-all-features", "--set-min-mon-release", "16", monmap)
	c.must("ceph-mon", "--conf", c.conf, "--mkfs", "-i", "a", "--monmap", monmap,
		"--keyring", filepath.Join(c.dir, "keyring.mon.a"))
}

// createOSDs adds the OSDs to the OSD map. `osd create` accepts any free id, but `osd new` assigns the lowest one.
func (c *Cluster) createOSDs() {
	c.t.Helper()
	for _, id := range c.hosts.all() {
		if err := c.createOSD(id); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *Cluster) createOSD(id int) error {
	uuid := newUUID()
	_, err := c.Try("osd", "create", uuid, strconv.Itoa(id))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uuids[id] = uuid
	return err
}

// makeOSDs creates all data directories in parallel.
func (c *Cluster) makeOSDs() {
	c.t.Helper()
	var all sync.WaitGroup
	failures := make(chan error, len(c.uuids))
	for id, uuid := range c.uuids {
		all.Go(func() { failures <- c.makeOSD(id, uuid) })
	}
	all.Wait()
	for range c.uuids {
		if err := <-failures; err != nil {
			c.t.Fatal(err)
		}
	}
}

// makeOSD creates the data directory of an OSD.
func (c *Cluster) makeOSD(id int, uuid string) error {
	if err := os.Mkdir(c.osdDir(id), 0o700); err != nil {
		return err
	}
	// Its configuration is all in ceph.conf, so it need not connect to the monitor.
	_, err := run(exec.CommandContext(c.t.Context(), "ceph-osd", "--conf", c.conf, "--no-mon-config", "-i", strconv.Itoa(id),
		"--mkfs", "--osd-uuid", uuid))
	return err
}

func (c *Cluster) osdDir(id int) string { return filepath.Join(c.dir, fmt.Sprintf("osd.%d", id)) }

func (c *Cluster) startOSDs(host string) {
	c.t.Helper()
	for _, id := range c.hosts[host] {
		c.startOSD(id, host)
	}
}

func (c *Cluster) startOSD(id int, host string) {
	c.t.Helper()
	osd := child.Start(c.t, "ceph-osd", "--conf", c.conf, "-i", strconv.Itoa(id),
		"--crush-location=host="+host+" root=default", "-f")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id] = osd
}

// waitUp waits until these OSDs are up.
func (c *Cluster) waitUp(osds ...int) {
	c.t.Helper()
	c.Eventually(await.HangTimeout, fmt.Sprintf("the OSDs %v are up", osds), func() bool {
		up := c.up()
		return !slices.ContainsFunc(osds, func(id int) bool { return !up[id] })
	})
}

// waitDown waits until the monitor has marked these OSDs as down.
func (c *Cluster) waitDown(osds ...int) {
	c.t.Helper()
	c.Eventually(await.HangTimeout, fmt.Sprintf("the OSDs %v are down", osds), func() bool {
		up := c.up()
		return !slices.ContainsFunc(osds, func(id int) bool { return up[id] })
	})
}

// up returns the OSDs that the monitor has marked as up.
func (c *Cluster) up() map[int]bool {
	c.t.Helper()
	var dump struct {
		OSDs []struct {
			OSD int `json:"osd"`
			Up  int `json:"up"`
		} `json:"osds"`
	}
	c.ask("osd dump", &dump)
	up := make(map[int]bool)
	for _, osd := range dump.OSDs {
		up[osd.OSD] = osd.Up == 1
	}
	return up
}

// waitMgr waits until the mgr is active.
func (c *Cluster) waitMgr() {
	c.t.Helper()
	c.Eventually(await.HangTimeout, "the mgr is active", c.mgrActive)
}

func (c *Cluster) mgrActive() bool {
	c.t.Helper()
	var status struct {
		MgrMap struct {
			Available bool `json:"available"`
		} `json:"mgrmap"`
	}
	c.ask("status", &status)
	return status.MgrMap.Available
}

// Eventually waits until a repeated check succeeds.
func (c *Cluster) Eventually(limit time.Duration, what string, holds func() bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	for {
		began := time.Now()
		if holds() {
			return
		}
		c.checkDaemons()
		select {
		case <-time.After(max(100*time.Millisecond, 2*time.Since(began))): // some checks start a program
		case <-ctx.Done():
			c.t.Fatalf("after %s it is still not so that %s\n%s", limit, what, c.Ceph("status"))
		}
	}
}

// checkDaemons fails the test if a daemon ended that the test did not stop.
func (c *Cluster) checkDaemons() {
	c.t.Helper()
	for _, d := range c.daemons() {
		if !d.Running() {
			c.t.Fatalf("%s ended, and the test did not stop it", d)
		}
	}
}

// daemons returns the daemons that the test did not stop.
func (c *Cluster) daemons() []*child.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*child.Process
	for _, daemons := range []iter.Seq[*child.Process]{maps.Values(c.osds), maps.Values(c.more)} {
		all = slices.AppendSeq(all, daemons)
	}
	if c.mgr != nil {
		all = append(all, c.mgr)
	}
	if c.mon != nil {
		all = append(all, c.mon)
	}
	return all
}
