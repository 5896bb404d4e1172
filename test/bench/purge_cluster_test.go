package bench

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/ceph"
	etcdtest "github.com/replicatedhq/ekco/test/etcd"
	"github.com/replicatedhq/ekco/test/kurl"
)

// wholeCluster has all that a purge removes: nodes, etcd members, kubeadm's
// ConfigMap, Rook's objects, and a real Ceph behind the tools pod.
type wholeCluster struct {
	*cluster
	ceph      *ceph.Cluster
	processes *cephProcesses
	etcd      *etcdtest.Cluster
	// members are the primaries that have an etcd member.
	members []string
}

// The primaries that stay, and the workers, each with an OSD.
var stay = []string{"primary-1", "primary-2"}

const benchWorkers = 4

// startWholeCluster starts a cluster with a primary for each victim, which are
// given by how many OSDs they have.
func startWholeCluster(b *testing.B, victims []int) *wholeCluster {
	b.Helper()
	processes := newCephProcesses(b)
	w := &wholeCluster{processes: processes, members: append([]string{victim(0)}, stay...)}
	w.cluster = startPlane(b, "--primaries", strconv.Itoa(len(stay)+len(victims)), "--workers", strconv.Itoa(benchWorkers), "--exec-handler", processes.Program)
	w.etcd = etcdtest.Start(b, w.program, "primary-1", "primary-2", victim(0))
	hosts := make(map[string]int)
	for i, osds := range victims {
		hosts[victim(i)] = osds
	}
	for i := range benchWorkers {
		hosts[fmt.Sprintf("worker-%d", i+1)] = 1
	}
	w.ceph = ceph.Start(b, ceph.Options{Hosts: hosts})
	processes.use(b, w.ceph.Conf())
	w.createRook(b)
	w.ceph.CreatePool("data", 3, 8)
	for i := range 20 {
		w.ceph.Write("data", fmt.Sprintf("object-%d", i), "content")
	}
	return w
}

// victim is the name of the primary that is lost as the i-th.
func victim(i int) string { return fmt.Sprintf("primary-%d", len(stay)+1+i) }

func (w *wholeCluster) createRook(b *testing.B) {
	b.Helper()
	w.apply(b, kurl.RookYAML)
	w.kubectl(b, "wait", "--for=condition=Established", "crd/cephclusters.ceph.rook.io", "--timeout=30s")
	w.kubectl(b, "apply", "-k", filepath.Join("..", "..", "deploy", "rook"))
	w.applyObject(b, kurl.RookObjects(w.ceph.Hosts(), "worker-1"))
	w.kubectl(b, "-n", kurl.RookNamespace, "wait", "--for=condition=Available", "deployment/"+kurl.ToolsPod, "--timeout=60s")
}

// lose gives the i-th victim an etcd member and an endpoint, waits until all is
// well, and then cuts its power.
func (w *wholeCluster) lose(b *testing.B, i int) {
	b.Helper()
	name := victim(i)
	addresses := make(map[string]string)
	if w.members[0] != name {
		// It is given the address of the one that was purged before.
		w.etcd.Add("primary-1", name, w.etcd.IP(w.members[0]), false).Start(stay...)
		w.members[0] = name
	}
	for _, member := range w.members {
		addresses[member] = w.etcd.IP(member)
	}
	w.applyObject(b, kurl.KubeadmConfig(kurl.ClusterStatus(addresses)))
	eventually(b, 2*time.Minute, "Ceph is well", func() bool { return strings.HasPrefix(w.ceph.Ceph("health"), "HEALTH_OK") })
	w.etcd.Kill(name)
	w.ceph.StopHost(name)
	w.nodes(b, "lose", []string{name})
}

// wantPurged fails the benchmark when anything of a node is left.
func (w *wholeCluster) wantPurged(b *testing.B, name string) {
	b.Helper()
	if tree := w.ceph.Ceph("osd", "tree"); strings.Contains(tree, name) {
		b.Errorf("the CRUSH tree still has %s:\n%s", name, tree)
	}
	members, err := w.etcd.Client(stay...).Members(b.Context())
	if err != nil || len(members) != len(stay) {
		b.Errorf("etcd has %d members, %v", len(members), err)
	}
	if nodes := w.kubectl(b, "get", "nodes", "-o", "name"); strings.Contains(nodes, "node/"+name+"\n") {
		b.Errorf("Node %s is still there", name)
	}
	deployments, err := w.client.AppsV1().Deployments(kurl.RookNamespace).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range deployments.Items {
		if d.Spec.Template.Spec.NodeSelector["kubernetes.io/hostname"] == name {
			b.Errorf("Deployment %s is still there", d.Name)
		}
	}
}
