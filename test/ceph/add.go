package ceph

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/test/child"
)

// AddHost creates and starts the OSDs of a spare host, and returns their ids. It returns nil if the host is not a spare
// host or was added before. It does not wait until the OSDs are up. Any goroutine may call it.
func (c *Cluster) AddHost(host string) ([]int, error) {
	c.mu.Lock()
	ids, spare := c.spare[host], len(c.hosts[host]) == 0
	c.mu.Unlock()
	if !spare {
		return nil, nil
	}
	for _, id := range ids {
		if err := c.createOSD(id); err != nil {
			return nil, err
		}
		if err := c.makeOSD(id, c.UUID(id)); err != nil {
			return nil, err
		}
		c.startOSD(id, host)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(ids) > 0 {
		c.hosts[host] = slices.Clone(ids)
	}
	return ids, nil
}

// AddMon creates and starts another monitor, which joins the others automatically. Any goroutine may call it.
func (c *Cluster) AddMon(name string) error {
	monmap, keyring := filepath.Join(c.dir, "monmap."+name), filepath.Join(c.dir, "keyring.mon."+name)
	if _, err := c.Try("mon", "getmap", "-o", monmap); err != nil {
		return err
	}
	keys, err := os.ReadFile(filepath.Join(c.dir, "keyring.mon.a"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(keyring, keys, 0o600); err != nil {
		return err
	}
	if _, err := run(exec.CommandContext(c.t.Context(), "ceph-mon", "--conf", c.conf, "--mkfs", "-i", name, "--monmap", monmap, "--keyring", keyring)); err != nil {
		return err
	}
	c.mu.Lock()
	c.mons++
	address := c.monAddress(c.mons)
	c.mu.Unlock()
	c.added("mon."+name, child.Start(c.t, "ceph-mon", "--conf", c.conf, "-i", name, "--public-addrv", address, "-f"))
	return nil
}

// AddMgr starts another mgr as a standby. Any goroutine may call it.
func (c *Cluster) AddMgr(name string) error {
	keyring := filepath.Join(c.dir, "keyring.mgr."+name)
	args := []string{"auth", "get-or-create", "mgr." + name, "-o", keyring}
	for _, caps := range mgrCaps {
		daemon, allowed, _ := strings.Cut(caps, " = ")
		args = append(args, daemon, strings.Trim(allowed, `"`))
	}
	if _, err := c.Try(args...); err != nil {
		return err
	}
	c.added("mgr."+name, child.Start(c.t, "ceph-mgr", "--conf", c.conf, "-i", name, "-f"))
	return nil
}

func (c *Cluster) added(name string, daemon *child.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more[name] = daemon
}

// StopAdded kills an added daemon, such as "mon.b", like a power failure.
func (c *Cluster) StopAdded(name string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	daemon := c.more[name]
	if daemon == nil {
		c.t.Fatalf("%s was not added, or was stopped before", name)
	}
	daemon.Kill()
	delete(c.more, name)
}
