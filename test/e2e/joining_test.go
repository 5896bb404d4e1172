package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/etcd"
)

// register makes the Node of a primary that is joining, as its kubelet does
// before kubeadm adds its etcd member. Nothing runs there.
func (k *kubeadmCluster) register(name, ip string) {
	k.t.Helper()
	nodes := k.client.CoreV1().Nodes()
	_, err := nodes.Create(k.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""},
	}}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	// Controllers change the Node at the same time.
	status := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, ip)
	if _, err := nodes.Patch(k.t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		k.t.Fatal(err)
	}
}

// forget removes the member of a node as an administrator would by hand.
func (k *kubeadmCluster) forget(name string, via ...string) {
	k.t.Helper()
	client := k.etcd.Client(via...)
	members, err := client.Members(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	at := slices.IndexFunc(members, func(m etcd.Member) bool { return m.Name == name })
	if err := client.RemoveMember(k.t.Context(), members[at].ID); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubeadmCluster) wantMembers(want ...string) {
	k.t.Helper()
	got := strings.Split(k.members("primary-1"), " ")
	if slices.Sort(got); !slices.Equal(got, want) {
		k.t.Errorf("etcd has the members %q, want %q", got, want)
	}
}

func TestALearnerAndAMemberThatJoinsAtTheOldAddressSurviveThePurgesOfDeadPrimaries(t *testing.T) {
	t.Parallel()
	k := startKubeadmCluster(t, clusterStatus121)
	o := newOperator(t, k.kubeconfigFor("kurl/ekco", nil), map[string]string{"certificates_dir": k.etcd.CertificatesDir()})
	o.startReady()
	k.node("lose", "primary-3")
	o.waitState("primary-3", fsmnode.Unknown)
	k.etcd.Kill("primary-3")
	k.forget("primary-3", "primary-1", "primary-2")
	k.etcd.Add("primary-1", "primary-8", k.etcd.FreeIP(), true).Start("primary-1", "primary-2")
	k.register("primary-9", k.etcd.IP("primary-3"))
	joining := k.etcd.Add("primary-1", "primary-9", k.etcd.IP("primary-3"), false)

	output, code := o.ekco("purge-node", "primary-3")
	if code != 1 || !strings.Contains(output, "another node has its address now") || !k.nodeExists("primary-3") {
		t.Errorf("while the member has not started: exit %d\n%s", code, output)
	}
	k.wantMembers("", "primary-1", "primary-2", "primary-8")
	joining.Start("primary-1", "primary-2")
	o.mustEkco("purge-node", "primary-3")
	k.wantMembers("primary-1", "primary-2", "primary-8", "primary-9")
	o.checkRecorded("primary-3")

	k.node("lose", "primary-2")
	k.etcd.Kill("primary-2")
	o.waitState("primary-2", fsmnode.Unknown)
	o.mustEkco("purge-node", "primary-2")
	k.wantMembers("primary-1", "primary-8", "primary-9")
	o.checkRecorded("primary-2")
}
