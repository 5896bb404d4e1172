package ceph

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// config is the content of ceph.conf. With it, OSDs notice a lost OSD within a few seconds instead of 20, and one
// reporter is enough. ceph commands have no admin sockets, because these would collide.
const config = `[global]
fsid = %[1]s
mon host = %[3]s
public addr = %[4]s
cluster addr = %[4]s
keyring = %[2]s/keyring.$name
run dir = %[2]s
log file = %[2]s/$name.log
mon cluster log file = %[2]s/cluster.log
mon cluster log to syslog = false
mon data = %[2]s/mon.$id
mgr data = %[2]s/mgr.$id
osd data = %[2]s/osd.$id
mon data avail warn = 1
mon data avail crit = 1
mon max pg per osd = 1000
mon allow pool delete = true
mon allow pool size one = true
mon osd min down reporters = 1
mon down mkfs grace = 1
mon osd reporter subtree level = osd
auth allow insecure global id reclaim = false
paxos propose interval = 0.1
paxos min wait = 0.02
mgr initial modules =
mgr stats period = 1
mgr disabled modules = %[5]s
memstore device bytes = 268435456
osd objectstore = memstore
osd crush initial weight = 1
osd pool default size = 2
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd heartbeat interval = 1
osd heartbeat grace = 3
mon warn on slow ping time = 600000
[client]
admin socket =
log file = /dev/null
`

// unwantedModules lists modules of the mgr that load slowly and are not needed. Other modules are always on.
var unwantedModules = []string{
	"alerts", "cephadm", "cli_api", "dashboard", "diskprediction_local", "hello", "influx", "insights",
	"iostat", "k8sevents", "localpool", "mds_autoscaler", "mirroring", "nfs", "osd_perf_query",
	"osd_support", "prometheus", "restful", "rook", "selftest", "snap_schedule", "stats", "telegraf",
	"test_orchestrator", "zabbix",
}

func (c *Cluster) writeConfig(options Options) {
	c.t.Helper()
	c.fsid = newUUID()
	content := fmt.Sprintf(config, c.fsid, c.dir, c.monAddress(1), c.address(1), strings.Join(unwantedModules, " "))
	if options.SeveralCopies {
		content = strings.ReplaceAll(content, "mon allow pool size one = true\n", "")
	}
	c.conf = filepath.Join(c.dir, "ceph.conf")
	if err := os.WriteFile(c.conf, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// address returns an IP address of the cluster. Number 1 is for all daemons except added monitors.
func (c *Cluster) address(number int) string { return c.network + strconv.Itoa(number) }

// monAddress returns a monitor's address, with Ceph's default ports.
func (c *Cluster) monAddress(number int) string {
	return fmt.Sprintf("[v2:%[1]s:3300,v1:%[1]s:6789]", c.address(number))
}

func newUUID() string {
	var b [16]byte
	// rand.Read never fails.
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
