package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	etcdtest "github.com/replicatedhq/ekco/test/etcd"
)

// kubeadmCluster is a cluster whose primaries have etcd members and API servers
// as kubeadm makes them. The members are real, and not the API server's own.
type kubeadmCluster struct {
	*cluster
	etcd *etcdtest.Cluster
}

func startKubeadmCluster(t *testing.T, clusterStatus string) *kubeadmCluster {
	t.Helper()
	c := startCluster(t)
	c.applyShippedRBAC()
	k := &kubeadmCluster{cluster: c, etcd: etcdtest.Start(t, binaries.controlplane, "primary-1", "primary-2", "primary-3")}
	k.createKubeadmObjects(clusterStatus, "primary-1", "primary-2", "primary-3")
	return k
}

// createKubeadmObjects makes kubeadm-config, and the pods of API servers on the
// primaries.
func (k *kubeadmCluster) createKubeadmObjects(clusterStatus string, primaries ...string) {
	k.t.Helper()
	data := map[string]string{"ClusterConfiguration": "kind: ClusterConfiguration\nkubernetesVersion: v1.21.14\n"}
	if clusterStatus != "" {
		for _, name := range primaries {
			clusterStatus = strings.ReplaceAll(clusterStatus, "IP-OF-"+name, k.etcd.IP(name))
		}
		data["ClusterStatus"] = clusterStatus
	}
	_, err := k.client.CoreV1().ConfigMaps("kube-system").Create(k.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config"}, Data: data,
	}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range primaries {
		k.addAPIServer(name)
	}
}

// addAPIServer adds what the kubelet shows of a node's static API server.
func (k *kubeadmCluster) addAPIServer(node string) {
	k.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-apiserver-" + node, Namespace: "kube-system",
			Labels: map[string]string{"component": "kube-apiserver", "tier": "control-plane"},
			Annotations: map[string]string{
				"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": net.JoinHostPort(k.etcd.IP(node), "6443"),
			},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-apiserver", Image: "kube-apiserver:v1"}}},
	}
	if _, err := k.client.CoreV1().Pods("kube-system").Create(k.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubeadmCluster) members(via string) string {
	k.t.Helper()
	members, err := k.etcd.Client(via).Members(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	names := make([]string, 0, len(members))
	for _, member := range members {
		names = append(names, member.Name)
	}
	return strings.Join(names, " ")
}

func (k *kubeadmCluster) clusterStatus() string {
	k.t.Helper()
	config, err := k.client.CoreV1().ConfigMaps("kube-system").Get(k.t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return config.Data["ClusterStatus"]
}

const (
	clusterStatus121 = `apiEndpoints:
  primary-1:
    advertiseAddress: IP-OF-primary-1
    bindPort: 6443
  primary-2:
    advertiseAddress: IP-OF-primary-2
    bindPort: 6443
  primary-3:
    advertiseAddress: IP-OF-primary-3
    bindPort: 6443
apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterStatus
`
	clusterStatusMalformed = `apiendpoints:
  primary-1:
    advertiseaddress: IP-OF-primary-1
    bindport: 6443
  primary-2:
    advertiseaddress: IP-OF-primary-2
    bindport: 6443
  primary-3:
    advertiseaddress: IP-OF-primary-3
    bindport: 6443
typemeta:
  kind: ClusterStatus
  apiversion: kubeadm.k8s.io/v1beta2
`
)

func TestAPurgeOfAPrimaryLeavesNoTraceOfIt(t *testing.T) {
	t.Parallel()
	shapes := map[string]string{
		"Kubernetes 1.21": clusterStatus121, "Kubernetes 1.22 and later": "", "malformed by an old EKCO": clusterStatusMalformed,
	}
	for name, status := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := startKubeadmCluster(t, status)
			o := newOperator(t, k.kubeconfigFor("kurl/ekco", nil), map[string]string{"certificates_dir": k.etcd.CertificatesDir()})
			o.startReady()
			k.node("lose", "primary-3")
			k.etcd.Kill("primary-3")
			o.waitState("primary-3", fsmnode.Unknown)

			output := o.mustEkco("purge-node", "primary-3")
			if k.nodeExists("primary-3") {
				t.Errorf("the Node is still there:\n%s", output)
			}
			if got := k.members("primary-1"); strings.Contains(got, "primary-3") || len(strings.Fields(got)) != 2 {
				t.Errorf("etcd has the members %q, want primary-1 and primary-2:\n%s", got, output)
			}
			after := k.clusterStatus()
			switch {
			case status == "" && after != "":
				t.Errorf("a ClusterStatus was made: %s", after)
			case status != "" && (strings.Contains(after, "primary-3") || !strings.Contains(after, "apiEndpoints") || !strings.Contains(after, k.etcd.IP("primary-2"))):
				t.Errorf("the ClusterStatus is\n%s", after)
			}
			o.checkRecorded("primary-3")
			again := o.mustEkco("purge-node", "primary-3")
			if !strings.Contains(again, "already") {
				t.Errorf("a second purge says:\n%s", again)
			}
		})
	}
}

func TestAPurgeThatWouldCostQuorumIsRefusedBeforeAnythingIsDestroyed(t *testing.T) {
	t.Parallel()
	k := startKubeadmCluster(t, clusterStatus121)
	o := newOperator(t, k.kubeconfigFor("kurl/ekco", nil), map[string]string{"certificates_dir": k.etcd.CertificatesDir()})
	o.startReady()
	k.node("lose", "primary-3")
	// Two of three members are gone: with either removed, one of two remains.
	k.etcd.Kill("primary-2", "primary-3")
	o.waitState("primary-3", fsmnode.Unknown)
	output, code := o.ekco("purge-node", "primary-3")
	if code == 0 {
		t.Errorf("the purge went through:\n%s", output)
	}
	if !k.nodeExists("primary-3") {
		t.Errorf("the Node was deleted before etcd was asked:\n%s", output)
	}
	if !strings.Contains(k.clusterStatus(), "primary-3") {
		t.Error("the ClusterStatus was edited")
	}
}

func TestAPurgeOfAPrimaryWithoutCertificatesTouchesNothing(t *testing.T) {
	t.Parallel()
	k := startKubeadmCluster(t, clusterStatus121)
	empty := filepath.Join(t.TempDir(), "pki")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, k.kubeconfigFor("kurl/ekco", nil), map[string]string{"certificates_dir": empty})
	o.startReady()
	k.node("lose", "primary-3")
	o.waitState("primary-3", fsmnode.Unknown)
	asked := child.Start(t, binaries.ekco, "purge-node", "primary-3", "--journal", o.journal, "--config", o.config)
	eventually(t, await.HangTimeout, "the command names the file that is missing", func() (bool, string) {
		output := asked.Output.String()
		return strings.Contains(output, "ca.crt") || strings.Contains(output, "healthcheck-client"), output
	})
	if !k.nodeExists("primary-3") {
		t.Error("the Node was deleted although etcd could not be asked")
	}
}
