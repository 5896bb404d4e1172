package nodetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/plane"
)

// binaries has the parts of nodes, which Build builds.
var binaries struct {
	controlplane, pause string
}

// Cluster is a real control plane with simulated nodes, which real nodes can join.
type Cluster struct {
	*plane.Plane

	// life is the test with which the cluster ends.
	life      testing.TB
	dir       string
	address   string
	authority *authority
	forwarder *forwarder
}

// StartCluster starts a control plane. args are arguments of "controlplane up".
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	p := plane.Start(tb, binaries.controlplane, args...)
	ca, err := readAuthority(p.Dir)
	if err != nil {
		tb.Fatal(err)
	}
	return &Cluster{Plane: p, life: tb, dir: p.Dir, address: strings.TrimPrefix(p.Config.Host, "https://"), authority: ca}
}

// register creates the Node object before the node starts, so that it has its labels from the beginning, as after
// kubeadm join.
func (c *Cluster) register(tb testing.TB, name string, labels map[string]string) {
	tb.Helper()
	all := map[string]string{"kubernetes.io/hostname": name}
	for key, value := range labels {
		all[key] = value
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
	if _, err := c.Client.CoreV1().Nodes().Create(tb.Context(), node, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
}

// serverForNodes returns the URL at which nodes reach the API server. The first node must already have its veth pair.
func (c *Cluster) serverForNodes(tb testing.TB) (server string) {
	tb.Helper()
	if c.forwarder == nil {
		c.forwarder = startForwarder(c.life, c.address)
		c.serve(tb, gateway, int32(c.forwarder.port()))
	}
	return fmt.Sprintf("https://%s:%d", gateway, c.forwarder.port())
}

// serve makes the Service kubernetes forward to an address.
func (c *Cluster) serve(tb testing.TB, address string, port int32) {
	tb.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(port), Protocol: new(corev1.ProtocolTCP)}},
	}
	if _, err := c.Client.DiscoveryV1().EndpointSlices("default").Create(tb.Context(), slice, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
}

func (c *Cluster) kubectl(args ...string) *exec.Cmd { return c.KubectlCommand(args...) }
