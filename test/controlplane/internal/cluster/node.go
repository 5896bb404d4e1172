package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// KubeletUp is the label selector of nodes that have a kubelet.
const KubeletUp = kubeletLabel + "=" + kubeletUp

const (
	kubeletLabel = "sim/kubelet"
	kubeletUp    = "up"

	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	masterLabel       = "node-role.kubernetes.io/master"

	kubeletVersion = "v1.36.3"
)

// Role is the role of a node.
type Role string

// Roles of nodes.
const (
	Primary Role = "primary"
	Worker  Role = "worker"
)

// ParseRole parses a role from the command line.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case Primary, Worker:
		return r, nil
	default:
		return "", fmt.Errorf("no role %q: use %s or %s", s, Primary, Worker)
	}
}

// Initial returns primary-1 to primary-N and worker-1 to worker-N, each with its own address.
func Initial(primaries, workers int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range primaries {
		nodes = append(nodes, newNode(fmt.Sprintf("primary-%d", i+1), Primary, address(len(nodes)+1)))
	}
	for i := range workers {
		nodes = append(nodes, newNode(fmt.Sprintf("worker-%d", i+1), Worker, address(len(nodes)+1)))
	}
	return nodes
}

// execAddress is the address at which the API server finds the kubelet of every node for exec; one server serves all
// nodes. Kubernetes itself does not use addresses of this type.
const execAddress = "127.0.0.1"

// webSocketsToKubelet is the feature with which a kubelet declares that it serves WebSockets itself. Otherwise the API
// server translates them, and then keeps the connection to the kubelet open after the client has disconnected.
const webSocketsToKubelet = "ExtendWebSocketsToKubelet"

// newNode returns a node as a kubelet registers it. No process listens at its internal address.
func newNode(name string, role Role, internalIP string) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		kubeletLabel:           kubeletUp,
	}
	if role == Primary {
		labels[controlPlaneLabel] = ""
		labels[masterLabel] = ""
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("16"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: internalIP},
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeExternalIP, Address: execAddress},
			},
			DeclaredFeatures: []string{webSocketsToKubelet},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: kubeletVersion, ContainerRuntimeVersion: "containerd://2.1.0",
				KernelVersion: "6.1.0", OSImage: "simulated", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
}

// addresses is the range of node addresses, a /16; the first one is not used. By default
// it is part of loopback, so that connections to nodes are refused on this machine.
// [NetworkVariable] sets another range, for network namespaces that route it to loopback.
var addresses = netip.MustParsePrefix(cmp.Or(os.Getenv(NetworkVariable), "127.128.0.0/16"))

// NetworkVariable names another range of node addresses.
const NetworkVariable = "EKCO_TEST_NODE_NETWORK"

// address returns the nth node address, beginning with 1.
func address(n int) string {
	base := addresses.Addr().As4()
	return netip.AddrFrom4([4]byte{base[0], base[1], byte(n >> 8), byte(n)}).String()
}

// freeAddress returns a number whose address and all later ones are unused.
func freeAddress(ctx context.Context, client kubernetes.Interface) (int, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("cannot list the nodes to find a free address: %w", err)
	}
	highest := 0
	for i := range nodes.Items {
		for _, a := range nodes.Items[i].Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || !addresses.Contains(ip) {
				continue
			}
			b := ip.As4()
			highest = max(highest, int(b[2])<<8|int(b[3]))
		}
	}
	return highest + 1, nil
}

// HasKubelet reports whether a node has a kubelet.
func HasKubelet(node *corev1.Node) bool { return node.Labels[kubeletLabel] == kubeletUp }

// IsUp returns an error with the reason unless the node is ready and has no taints of the node lifecycle controller.
func IsUp(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if status := readyStatus(node); status != corev1.ConditionTrue {
		return fmt.Errorf("node %s has Ready=%s", name, status)
	}
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Key != corev1.TaintNodeUnschedulable {
			return fmt.Errorf("node %s has taint %s:%s", name, taint.Key, taint.Effect)
		}
	}
	return nil
}

// IsLost returns an error with the reason unless the node is Ready=Unknown and has the taint that evicts its pods.
func IsLost(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if status := readyStatus(node); status != corev1.ConditionUnknown {
		return fmt.Errorf("node %s has Ready=%s", name, status)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute {
			return nil
		}
	}
	return fmt.Errorf("node %s is not tainted %s:%s yet", name, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
}

func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionFalse
}
