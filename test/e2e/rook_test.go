package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
	etcdtest "github.com/replicatedhq/ekco/test/etcd"
	"github.com/replicatedhq/ekco/test/kurl"
	"github.com/replicatedhq/ekco/test/rook"
)

// seldom waits for a condition that starts a process: it checks once a second, so that checks
// do not slow down what they wait for.
func seldom(t *testing.T, what string, condition func() (bool, string)) {
	t.Helper()
	await.Looking(t, time.Second, await.HangTimeout, what, condition)
}

// rookCluster is a cluster with Rook's own CRDs, what kURL makes of them on its first node,
// and a real Ceph behind the tools pod, with OSDs on that node and disks on two others, of which
// one is to be a primary with a member of etcd. A stand-in for Rook's operator carries into Ceph
// what is asked of Rook.
type rookCluster struct {
	*kubeadmCluster
	ceph *ceph.Cluster
}

// mgrPool is what the mgr of Ceph 16 keeps for itself. Nobody but EKCO says how many copies of it
// there are.
const mgrPool = "device_health_metrics"

func startRookCluster(t *testing.T) *rookCluster {
	t.Helper()
	exec := newBridge(t)
	plane := startCluster(t, "--primaries", "2", "--workers", "1", "--exec-handler", exec.Program)
	plane.applyShippedRBAC()
	members := etcdtest.Start(t, binaries.controlplane, "primary-1", "primary-2", "primary-3")
	c := &rookCluster{kubeadmCluster: &kubeadmCluster{cluster: plane, etcd: members}}
	c.createKubeadmObjects(strings.ReplaceAll(clusterStatus121, "IP-OF-primary-3", members.IP("primary-3")), "primary-1", "primary-2")
	// Ids of one digit and of two.
	c.ceph = ceph.Start(t, ceph.Options{
		Hosts: map[string]int{"worker-1": 1}, Spare: map[string]int{"worker-2": 1, "primary-3": 2}, FirstOSD: 9,
	})
	exec.cephConf = c.ceph.Conf()
	c.ceph.Ceph("osd", "pool", "create", mgrPool, "1")
	c.ceph.Ceph("osd", "pool", "application", "enable", mgrPool, "mgr_devicehealth")
	c.kubectl("create", "namespace", kurl.RookNamespace)
	c.kubectl("create", "-f", kurl.RookCRDs(t, filepath.Join("..", "crds")))
	c.waitRookCRDs()
	c.applyShipped("rook")
	c.apply(kurl.RookStorage("v1.10.6", "worker-1"))
	c.apply(kurl.OSDDeployment("worker-1", 9))
	rook.Start(t, c.config, c.ceph)
	return c
}

// storage says what Rook is asked for.
func (c *rookCluster) storage() string {
	c.t.Helper()
	read := func(plural, name string, into any) {
		c.t.Helper()
		text, err := c.client.RESTClient().Get().AbsPath("/apis/ceph.rook.io/v1/namespaces", kurl.RookNamespace, plural, name).DoRaw(c.t.Context())
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	type pool struct {
		Replicated struct{ Size int }
	}
	var cluster struct {
		Spec struct {
			Mon, Mgr struct{ Count int }
			Storage  struct {
				UseAllNodes bool
				Nodes       []struct{ Name string }
			}
		}
	}
	var block struct{ Spec pool }
	var fs struct {
		Spec struct {
			MetadataPool pool
			DataPools    []pool
		}
	}
	var store struct {
		Spec struct{ MetadataPool, DataPool pool }
	}
	read("cephclusters", "rook-ceph", &cluster)
	read("cephblockpools", "replicapool", &block)
	read("cephfilesystems", "rook-shared-fs", &fs)
	read("cephobjectstores", "rook-ceph-store", &store)
	nodes := "all"
	if !cluster.Spec.Storage.UseAllNodes {
		nodes = ""
		for _, node := range cluster.Spec.Storage.Nodes {
			nodes += " " + node.Name
		}
	}
	return fmt.Sprintf("nodes%s, copies %d %d %d %d %d, mons %d, mgrs %d", nodes, block.Spec.Replicated.Size,
		fs.Spec.MetadataPool.Replicated.Size, fs.Spec.DataPools[0].Replicated.Size,
		store.Spec.MetadataPool.Replicated.Size, store.Spec.DataPool.Replicated.Size, cluster.Spec.Mon.Count, cluster.Spec.Mgr.Count)
}

func (c *rookCluster) waitStorage(want string) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "Rook is asked for "+want, func() (bool, string) {
		is := c.storage()
		return is == want, is
	})
}

// waitCopies waits until Ceph keeps every pool in so many copies, all of them whole, and serves
// the mgr's with as few as EKCO sets.
func (c *rookCluster) waitCopies(copies int) {
	c.t.Helper()
	var pools []struct {
		Name    string `json:"pool_name"`
		Size    int
		MinSize int `json:"min_size"`
	}
	seldom(c.t, fmt.Sprintf("Ceph has %d whole copies of everything", copies), func() (bool, string) {
		if err := json.Unmarshal([]byte(c.ceph.Ceph("osd", "pool", "ls", "detail", "-f", "json")), &pools); err != nil {
			return false, err.Error()
		}
		for _, pool := range pools {
			if pool.Size != copies {
				return false, fmt.Sprintf("pool %s keeps %d copies", pool.Name, pool.Size)
			}
			if pool.Name == mgrPool && pool.MinSize != copies-copies/2 {
				return false, fmt.Sprintf("pool %s of %d copies is served with %d", pool.Name, copies, pool.MinSize)
			}
		}
		var status struct {
			PGMap struct {
				Groups  int `json:"num_pgs"`
				ByState []struct {
					Name  string `json:"state_name"`
					Count int
				} `json:"pgs_by_state"`
			}
		}
		text := c.ceph.Ceph("status", "-f", "json")
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			return false, err.Error()
		}
		states := status.PGMap.ByState
		return len(pools) == 11 && len(states) == 1 && states[0].Name == "active+clean", fmt.Sprintf("%d pools, %+v", len(pools), states)
	})
}

func TestTheStorageFollowsNodesAndHostsUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c := startRookCluster(t)
	c.waitTools("worker-1")
	o := newOperator(t, c.kubeconfigFor("kurl/ekco", nil), map[string]string{
		"maintain_rook_storage_nodes": "true", "ceph_object_store": "rook-ceph-store", "reconcile_interval": "1h", "settling_time": "200ms",
		"certificates_dir": c.etcd.CertificatesDir(),
	})
	o.startReady()
	c.waitStorage("nodes primary-1 primary-2 worker-1, copies 1 1 1 1 1, mons 1, mgrs 1")
	c.waitCopies(1)
	data := c.store()

	// Polls are an hour apart: what follows is from the events of nodes, and of OSDs' pods.
	c.join("worker-2", "worker", "nodes primary-1 primary-2 worker-1 worker-2, copies 2 2 2 2 2, mons 1, mgrs 2")
	c.waitCopies(2)
	c.join("primary-3", "primary", "nodes primary-1 primary-2 worker-1 worker-2 primary-3, copies 3 3 3 3 3, mons 3, mgrs 2")
	c.addAPIServer("primary-3")
	c.waitCopies(3)
	c.waitDaemons()

	o.running.Stop(await.HangTimeout)
	o.set(t, "reconcile_interval", "1h", "5s")
	o.append(t, "purge_dead_nodes: true")
	o.startReady()
	added := o.nodesToAdded()
	t.Logf("nodes were added %v after they were seen", added)
	if len(added) < 2 {
		t.Errorf("%d nodes were added, want 2", len(added))
	}
	c.loseHostForGood(o, "primary-3")
	data.wantReadable(t)

	c.kubectl("delete", "namespace", kurl.RookNamespace, "--wait=false")
	c.kubectl("-n", kurl.RookNamespace, "delete", "cephclusters,cephblockpools,cephfilesystems,cephobjectstores", "--all")
	seldom(t, "all of Rook is gone", func() (bool, string) {
		things := o.status().Things
		left := slices.DeleteFunc(slices.Clone(things), func(thing thingStatus) bool {
			return thing.State == fsmrook.Removed || !strings.HasPrefix(thing.Machine, "rook")
		})
		return len(things) >= 5 && len(left) == 0, fmt.Sprintf("left are %+v", left)
	})
	if status := o.status(); len(status.Refusals) > 0 || len(status.Actions) > 0 {
		t.Errorf("after Rook was removed refused are %+v, open are %+v", status.Refusals, status.Actions)
	}
}

// join adds a node with disks, and waits until Rook is asked for what follows.
func (c *rookCluster) join(node, role, want string) {
	c.t.Helper()
	began := time.Now()
	c.node("add", node, "--role", role)
	c.waitStorage(want)
	c.t.Logf("%s after %s was added: %s", time.Since(began).Round(100*time.Millisecond), node, want)
}

// set changes a key of the configuration, of which EKCO knows at its next start.
func (o *operator) set(t *testing.T, key, from, to string) {
	t.Helper()
	content, err := os.ReadFile(o.config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), key+": "+from, key+": "+to, 1)
	if changed == string(content) {
		t.Fatalf("the configuration has no %s: %s:\n%s", key, from, content)
	}
	if err := os.WriteFile(o.config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// append adds a key to the configuration, of which EKCO knows at its next start.
func (o *operator) append(t *testing.T, line string) {
	t.Helper()
	content, err := os.ReadFile(o.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.config, append(content, line+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// nodesToAdded returns how long after the event of a node each change of the list ended, but
// for the first, which waits for EKCO to settle.
func (o *operator) nodesToAdded() (took []time.Duration) {
	o.t.Helper()
	var last time.Time
	ends := 0
	for _, event := range o.events() {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.NodeObserved:
			last = event.Time
		case *journal.ActionEnded:
			if !strings.HasPrefix(event.Action, "add-storage-nodes-") || p.Outcome != journal.OutcomeDone {
				continue
			}
			if ends++; ends > 1 {
				took = append(took, event.Time.Sub(last))
			}
		}
	}
	return took
}
