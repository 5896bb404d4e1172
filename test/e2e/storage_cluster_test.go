package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
	etcdtest "github.com/replicatedhq/ekco/test/etcd"
	"github.com/replicatedhq/ekco/test/kurl"
)

// wholeCluster is a cluster with all that a purge removes: nodes, etcd members,
// kubeadm's ConfigMap, Rook's objects, and a real Ceph behind the tools pod.
type wholeCluster struct {
	*kubeadmCluster
	ceph  *ceph.Cluster
	relay *etcdtest.Relay
	exec  *bridge
	gate  *gate
}

// osdsOf says how many OSDs the hosts have. Workers 3 to 5 stay.
var osdsOf = map[string]int{
	"primary-3": 2, "primary-4": 3, "primary-5": 1, "worker-1": 1, "worker-2": 1, "worker-3": 1, "worker-4": 1, "worker-5": 1,
	"worker-6": 1, "worker-7": 3, "worker-8": 1,
}

const (
	// toolsNode is where the tools pod runs.
	toolsNode = "worker-5"
	// firstOSD makes ids of two digits, but for one.
	firstOSD = 9
	// The pool keeps copies of some objects, so that two hosts may be lost at once.
	pool    = "data"
	copies  = 3
	objects = 12
)

func startWholeCluster(t *testing.T) *wholeCluster {
	t.Helper()
	exec := newBridge(t)
	plane := startCluster(t, "--primaries", "5", "--workers", "8", "--exec-handler", exec.Program)
	plane.applyShippedRBAC()
	primaries := []string{"primary-1", "primary-2", "primary-3", "primary-4", "primary-5"}
	members, relay := etcdtest.StartRelayed(t, binaries.controlplane, primaries...)
	w := &wholeCluster{
		kubeadmCluster: &kubeadmCluster{cluster: plane, etcd: members},
		ceph:           ceph.Start(t, ceph.Options{Hosts: osdsOf, FirstOSD: firstOSD}),
		relay:          relay, exec: exec, gate: newGate(t, plane.config),
	}
	exec.cephConf, w.gate.interrupt = w.ceph.Conf(), exec.interrupt
	t.Cleanup(exec.interrupt.disarm) // else the gate would wait at its end for what a failed test holds
	addresses := make(map[string]string)
	for _, name := range primaries {
		addresses[name] = members.IP(name)
	}
	w.createKubeadmObjects(kurl.ClusterStatus(addresses), primaries...)
	w.createRookObjects()
	w.ceph.CreatePool(pool, copies, 8)
	for i := range objects {
		w.ceph.Write(pool, object(i), content(i))
	}
	return w
}

func object(i int) string  { return fmt.Sprintf("object-%d", i) }
func content(i int) string { return strings.Repeat(fmt.Sprintf("content of %d ", i), 100) }

// createRookObjects makes what Rook would, and gives EKCO its permissions there.
func (w *wholeCluster) createRookObjects() {
	w.t.Helper()
	w.kubectl("apply", "-f", filepath.Join("..", "kurl", "rook.yaml"))
	w.kubectl("wait", "--for=condition=Established", "crd/cephclusters.ceph.rook.io", "--timeout="+await.HangTimeout.String())
	w.applyShipped("rook")
	w.apply(kurl.RookObjects(w.ceph.Hosts(), toolsNode))
	w.waitTools(toolsNode)
}

// apply applies one object.
func (c *cluster) apply(manifest any) {
	c.t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "manifest.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("apply", "-f", path)
}

// waitTools waits until the tools pod runs on the node, and is the only one.
func (c *cluster) waitTools(node string) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "the tools pod runs on "+node, func() (bool, string) {
		got := strings.TrimSpace(c.kubectl("-n", "rook-ceph", "get", "pods", "-l", "app="+kurl.ToolsPod,
			"-o", `jsonpath={range .items[*]}{.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}{end}`))
		return got == node+" True", got
	})
}

// moveTools has the tools pod run on a node.
func (w *wholeCluster) moveTools(node string) {
	w.t.Helper()
	w.apply(kurl.ToolsDeployment(node))
}

// lose cuts the power of nodes: kubelets, etcd members and OSDs.
func (w *wholeCluster) lose(nodes ...string) {
	w.t.Helper()
	for _, node := range nodes {
		w.node("lose", node)
		if strings.HasPrefix(node, "primary") {
			w.etcd.Kill(node)
		}
	}
	w.ceph.StopHost(nodes...)
}

// install makes an installation of EKCO on this cluster, whose requests go
// through the gate, and removes its traces with the test.
func (w *wholeCluster) install(t *testing.T, keys map[string]string) *operator {
	t.Helper()
	all := map[string]string{
		"certificates_dir": w.etcd.CertificatesDir(), "maintain_rook_storage_nodes": "true", "settling_time": "200ms",
		// What is listed is for the test to say: no node has this label.
		"rook_storage_nodes_label": "ekco.test/stores=data",
	}
	maps.Copy(all, keys)
	w.kubectl("delete", "configmap", "-n", "kurl", "ekco-journal", "--ignore-not-found")
	return newOperator(t, w.kubeconfigFor("kurl/ekco", w.gate), all)
}

// wantHealthy waits until Ceph is well, and reads all data.
func (w *wholeCluster) wantHealthy() {
	w.t.Helper()
	var health struct {
		Status string `json:"status"`
	}
	eventually(w.t, await.HangTimeout, "Ceph is well again", func() (bool, string) {
		text := w.ceph.Ceph("health", "detail", "-f", "json")
		if err := json.Unmarshal([]byte(text), &health); err != nil {
			return false, err.Error()
		}
		return health.Status == "HEALTH_OK", text
	})
	for i := range objects {
		if got := w.ceph.Read(pool, object(i)); got != content(i) {
			w.t.Errorf("%s is %q", object(i), got)
		}
	}
}
