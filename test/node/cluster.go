package nodetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// binaries are what nodes are made of; Build builds them.
var binaries struct {
	controlplane, pause string
}

// Cluster is a real control plane with simulated nodes, which real ones join.
type Cluster struct {
	// Client is the administrator's.
	Client *kubernetes.Clientset

	// life is the test that it ends with.
	life      testing.TB
	dir       string
	address   string
	authority *authority
	door      *door
}

var kubeconfigLine = regexp.MustCompile(`(?m)^KUBECONFIG=(.+)$`)

// StartCluster starts a control plane; args are those of "controlplane up".
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	dir := tb.TempDir()
	up := child.Start(tb, binaries.controlplane, append([]string{"up", "--dir", dir}, args...)...)
	await.Until(tb, patience, "the control plane is up", func() (bool, string) {
		if !up.Running() {
			tb.Fatalf("the control plane did not start:\n%s", up.Output.Tail(2000))
		}
		return kubeconfigLine.MatchString(up.Output.String()), up.Output.Tail(500)
	})
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		tb.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	ca, err := readAuthority(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return &Cluster{Client: client, life: tb, dir: dir, address: strings.TrimPrefix(config.Host, "https://"), authority: ca}
}

// register makes the Node object, so that it has its labels from the start, as those of a
// node that kubeadm has joined.
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

// openDoor returns how nodes reach the API server, once the first has its cable.
func (c *Cluster) openDoor(tb testing.TB) (server string) {
	tb.Helper()
	if c.door == nil {
		c.door = openDoor(c.life, c.address)
		c.serve(tb, gateway, int32(c.door.port()))
	}
	return fmt.Sprintf("https://%s:%d", gateway, c.door.port())
}

// serve has the Service kubernetes lead to an address.
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

// Kubectl runs kubectl as the administrator.
func (c *Cluster) Kubectl(tb testing.TB, args ...string) string {
	tb.Helper()
	output, err := c.kubectl(args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

func (c *Cluster) kubectl(args ...string) *exec.Cmd {
	command := exec.CommandContext(context.Background(), binaries.controlplane, append([]string{"kubectl"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"))
	return command
}
