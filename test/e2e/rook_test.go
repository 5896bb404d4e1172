package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/ceph"
	"github.com/replicatedhq/ekco/test/kurl"
)

// rookCluster is a cluster with Rook's own CRDs, what kURL makes of them on its first node,
// and a real Ceph behind the tools pod. No operator of Rook runs: what EKCO asks of Rook
// nobody carries into Ceph, and the test starts OSDs by hand.
type rookCluster struct {
	*cluster
	ceph *ceph.Cluster
}

func startRookCluster(t *testing.T) *rookCluster {
	t.Helper()
	exec := newBridge(t)
	c := &rookCluster{cluster: startCluster(t, "--primaries", "1", "--workers", "1", "--exec-handler", exec.Program)}
	c.applyShippedRBAC()
	// Ids of one digit and of two.
	c.ceph = ceph.Start(t, ceph.Options{Hosts: map[string]int{"worker-1": 1, "worker-2": 1, "worker-3": 2}, FirstOSD: 9})
	c.ceph.StopHost("worker-2", "worker-3")
	exec.cephConf = c.ceph.Conf()
	c.kubectl("create", "namespace", kurl.RookNamespace)
	c.kubectl("create", "-f", kurl.RookCRDs(t, filepath.Join("..", "crds")))
	for _, plural := range []string{"cephclusters", "cephblockpools", "cephfilesystems", "cephobjectstores"} {
		c.kubectl("wait", "--for=condition=Established", "crd/"+plural+".ceph.rook.io", "--timeout="+patience.String())
	}
	c.applyShipped("rbac-rook.yaml")
	c.apply(kurl.RookStorage("v1.10.6", "worker-1"))
	return c
}

// storage says what Rook is asked for.
func (c *rookCluster) storage() string {
	c.t.Helper()
	read := func(plural, name string, into any) {
		c.t.Helper()
		text := c.kubectl("-n", kurl.RookNamespace, "get", plural, name, "-o", "json")
		if err := json.Unmarshal([]byte(text), into); err != nil {
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
	eventually(c.t, patience, "Rook is asked for "+want, func() (bool, string) {
		is := c.storage()
		return is == want, is
	})
}

func TestTheStorageFollowsNodesAndHostsUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c := startRookCluster(t)
	c.waitTools("worker-1")
	o := newOperator(t, c.kubeconfigFor("kurl/ekco", nil), map[string]string{
		"maintain_rook_storage_nodes": "true", "ceph_object_store": "rook-ceph-store", "reconcile_interval": "1h", "settling_time": "200ms",
	})
	o.startReady()
	c.waitStorage("nodes primary-1 worker-1, copies 1 1 1 1 1, mons 1, mgrs 1")

	// Polls are an hour apart: what follows is from the events of nodes, and of OSDs' pods.
	c.node("add", "worker-2", "--role", "worker")
	c.waitStorage("nodes primary-1 worker-1 worker-2, copies 1 1 1 1 1, mons 1, mgrs 1")
	c.startOSDs("worker-2", "nodes primary-1 worker-1 worker-2, copies 2 2 2 2 2, mons 1, mgrs 2")
	c.node("add", "worker-3", "--role", "worker")
	c.waitStorage("nodes primary-1 worker-1 worker-2 worker-3, copies 2 2 2 2 2, mons 1, mgrs 2")
	c.startOSDs("worker-3", "nodes primary-1 worker-1 worker-2 worker-3, copies 3 3 3 3 3, mons 3, mgrs 2")

	o.running.Stop(grace)
	o.set(t, "reconcile_interval", "1h", "5s")
	o.startReady()
	seen := len(o.events())
	c.ceph.StopHost("worker-3")
	eventually(t, patience, "EKCO sees that the host is lost", func() (bool, string) {
		events := o.events()
		last := events[len(events)-1]
		return len(events) > seen && strings.Contains(string(last.Payload), `["worker-1","worker-2"]`), fmt.Sprintf("%+v", last)
	})
	o.mustEkco("status") // has decided
	if is := c.storage(); is != "nodes primary-1 worker-1 worker-2 worker-3, copies 3 3 3 3 3, mons 3, mgrs 2" {
		t.Errorf("after a host was lost Rook is asked for %s", is)
	}
	if added := o.nodesToAdded(); len(added) < 2 {
		t.Errorf("nodes were added %v after they were seen", added)
	} else {
		t.Logf("nodes were added %v after they were seen", added)
		for _, took := range added {
			if took > 2*time.Second {
				t.Errorf("a node was added after %s, want 2s", took)
			}
		}
	}
	status := o.status()
	if len(status.Refusals) > 0 || len(status.Actions) > 0 {
		t.Errorf("refused are %+v, open are %+v", status.Refusals, status.Actions)
	}

	c.kubectl("delete", "namespace", kurl.RookNamespace, "--wait=false")
	c.kubectl("-n", kurl.RookNamespace, "delete", "cephclusters,cephblockpools,cephfilesystems,cephobjectstores", "--all")
	eventually(t, patience, "all of Rook is gone", func() (bool, string) {
		text := o.mustEkco("status")
		return strings.Count(text, "Removed") == 5, text
	})
	if status := o.status(); len(status.Refusals) > 0 || len(status.Actions) > 0 {
		t.Errorf("after Rook was removed refused are %+v, open are %+v", status.Refusals, status.Actions)
	}
}

// startOSDs starts those of a host, and then their pods, as Rook does it the other way round,
// and waits until Rook is asked for what follows.
func (c *rookCluster) startOSDs(host, want string) {
	c.t.Helper()
	c.ceph.StartHost(host)
	began := time.Now()
	for _, id := range c.ceph.Hosts()[host] {
		c.apply(kurl.OSDDeployment(host, id))
	}
	c.waitStorage(want)
	c.t.Logf("%s after the pods of %s: %s", time.Since(began), host, want)
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
