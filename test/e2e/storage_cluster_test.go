package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/ceph"
	etcdtest "github.com/replicatedhq/ekco/test/etcd"
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

// osdsOf says how many OSDs the hosts have. The last three workers stay.
var osdsOf = map[string]int{
	"primary-3": 2, "primary-4": 3, "primary-5": 1, "worker-1": 1, "worker-2": 1, "worker-3": 1, "worker-4": 1, "worker-5": 1,
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
	plane := startCluster(t, "--primaries", "5", "--workers", "5", "--exec-handler", exec.Program)
	plane.applyShippedRBAC()
	primaries := []string{"primary-1", "primary-2", "primary-3", "primary-4", "primary-5"}
	members, relay := etcdtest.StartRelayed(t, binaries.controlplane, primaries...)
	w := &wholeCluster{
		kubeadmCluster: &kubeadmCluster{cluster: plane, etcd: members},
		ceph:           ceph.Start(t, ceph.Options{Hosts: osdsOf, FirstOSD: firstOSD}),
		relay:          relay, exec: exec, gate: newGate(t, plane.config),
	}
	exec.cephConf, w.gate.interrupt = w.ceph.Conf(), exec.interrupt
	w.createKubeadmObjects(clusterStatusOf(primaries), primaries...)
	w.createRookObjects()
	w.ceph.CreatePool(pool, copies)
	for i := range objects {
		w.ceph.Write(pool, object(i), content(i))
	}
	return w
}

func object(i int) string  { return fmt.Sprintf("object-%d", i) }
func content(i int) string { return strings.Repeat(fmt.Sprintf("content of %d ", i), 100) }

// clusterStatusOf is what kubeadm wrote until Kubernetes 1.21.
func clusterStatusOf(primaries []string) string {
	var text strings.Builder
	text.WriteString("apiEndpoints:\n")
	for _, name := range primaries {
		fmt.Fprintf(&text, "  %s:\n    advertiseAddress: IP-OF-%s\n    bindPort: 6443\n", name, name)
	}
	text.WriteString("apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterStatus\n")
	return text.String()
}

// createRookObjects makes what Rook would, and gives EKCO its permissions there.
func (w *wholeCluster) createRookObjects() {
	w.t.Helper()
	w.kubectl("apply", "-f", "testdata/rook.yaml")
	w.kubectl("wait", "--for=condition=Established", "crd/cephclusters.ceph.rook.io", "--timeout=30s")
	w.applyShipped("rbac-rook.yaml")
	var all []any
	var entries []any
	for host, ids := range w.ceph.Hosts() {
		// As kURL and people write them: with and without devices.
		entry := map[string]any{"name": host}
		if len(ids) > 1 {
			entry["devices"] = []any{map[string]any{"name": "sdb", "config": map[string]any{"osdsPerDevice": fmt.Sprint(len(ids))}}}
		}
		entries = append(entries, entry)
		for _, id := range ids {
			all = append(all, osdDeployment(host, id))
		}
	}
	all = append(all, toolsDeployment(toolsNode), map[string]any{
		"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
		"metadata": map[string]any{"name": "rook-ceph", "namespace": "rook-ceph"},
		"spec": map[string]any{
			"dataDirHostPath": "/opt/replicated/rook",
			"mon":             map[string]any{"count": 3},
			"storage":         map[string]any{"useAllNodes": false, "useAllDevices": true, "nodes": entries},
		},
	})
	w.apply(map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
	w.waitTools(toolsNode)
}

// osdDeployment has the name and labels that Rook gives, and its node selector.
func osdDeployment(host string, id int) any {
	labels := map[string]any{"app": "rook-ceph-osd", "ceph-osd-id": fmt.Sprint(id), "rook_cluster": "rook-ceph"}
	return deploymentOn(fmt.Sprintf("rook-ceph-osd-%d", id), host, "osd", labels)
}

func toolsDeployment(host string) any {
	return deploymentOn(toolsPod, host, toolsPod, map[string]any{"app": toolsPod})
}

func deploymentOn(name, host, container string, labels map[string]any) any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "rook-ceph", "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"nodeSelector":                  map[string]any{"kubernetes.io/hostname": host},
					"terminationGracePeriodSeconds": 1,
					"containers":                    []any{map[string]any{"name": container, "image": "ceph:16"}},
				},
			},
		},
	}
}

// apply applies one object.
func (w *wholeCluster) apply(manifest any) {
	w.t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "manifest.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("apply", "-f", path)
}

// waitTools waits until the tools pod runs on the node, and is the only one.
func (w *wholeCluster) waitTools(node string) {
	w.t.Helper()
	eventually(w.t, patience, "the tools pod runs on "+node, func() (bool, string) {
		got := strings.TrimSpace(w.kubectl("-n", "rook-ceph", "get", "pods", "-l", "app="+toolsPod,
			"-o", `jsonpath={range .items[*]}{.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}{end}`))
		return got == node+" True", got
	})
}

// moveTools has the tools pod run on a node.
func (w *wholeCluster) moveTools(node string) {
	w.t.Helper()
	w.apply(toolsDeployment(node))
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
	eventually(w.t, patience, "Ceph is well again", func() (bool, string) {
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
