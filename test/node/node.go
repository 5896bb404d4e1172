package nodetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/artifacts"
	"github.com/replicatedhq/ekco/test/await"
)

// Node is a real node of a cluster. Only the test's goroutine may call its methods.
type Node struct {
	// Name is the name of the Node object.
	Name string

	// life is the test with which the node ends.
	life    testing.TB
	cluster *Cluster
	// dir has the node's disk and its settings.
	dir     string
	network network
	group   string

	machine                    *machine
	containerd, kubelet, proxy *program
	// kubeletStarted is when the present kubelet started.
	kubeletStarted time.Time
}

// Start creates a node. Its disk has only images, from the given archives, and the files that kubeadm leaves on a
// primary. The node runs until the cluster's test ends.
func (c *Cluster) Start(tb testing.TB, name string, labels map[string]string, images ...string) *Node {
	tb.Helper()
	dir, err := os.MkdirTemp("", "ekco-node-")
	if err != nil {
		tb.Fatal(err)
	}
	n := &Node{Name: name, life: c.life, cluster: c, dir: dir, network: network{freeNumber(tb)}, group: filepath.Base(dir)}
	c.life.Cleanup(n.remove)
	for _, sub := range []string{"settings", "disk/etc/kubernetes/pki", "disk/etc/kubernetes/manifests"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	if err := writeSettings(dir, name, n.group, n.network); err != nil {
		tb.Fatal(err)
	}
	c.register(tb, name, labels)
	n.boot(tb)
	for _, image := range append([]string{binaries.pause}, images...) {
		n.Import(tb, image)
	}
	return n
}

// boot turns the node on with its present disk.
func (n *Node) boot(tb testing.TB) {
	tb.Helper()
	n.machine = startMachine(n.life, tb, n.dir, n.Name, binaries.controlplane)
	n.network.connect(tb, n.machine)
	if err := writeIdentities(n.dir, n.Name, n.cluster.authority, n.network, n.cluster.serverForNodes(tb)); err != nil {
		tb.Fatal(err)
	}
	n.containerd = n.machine.start(tb, "containerd", "--config", "/node/containerd.toml")
	n.proxy = n.machine.start(tb, "/node/controlplane", "kube-proxy", "--config", "/node/proxy.yaml")
	await.Until(tb, await.HangTimeout, "containerd answers", func() (bool, string) {
		output, err := n.ctr("version")
		return err == nil, output + n.containerd.Output.Tail(500)
	})
	n.startKubelet(tb)
}

func (n *Node) startKubelet(tb testing.TB) {
	tb.Helper()
	n.kubeletStarted = time.Now()
	n.kubelet = n.machine.start(tb, "/node/controlplane", "kubelet", "--config", "/node/kubelet.yaml",
		"--kubeconfig", "/etc/kubernetes/kubelet.conf", "--hostname-override", n.Name, "--node-ip", n.network.address())
}

// Import imports an image from its archive.
func (n *Node) Import(tb testing.TB, archive string) {
	tb.Helper()
	file, err := os.Open(archive)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	command := n.command("ctr", "--namespace", "k8s.io", "image", "import", "-")
	command.Stdin = file
	if output, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("import %s: %v: %s", archive, err, output)
	}
}

// WaitReady waits until the running kubelet has reported Ready. Before that it may not know its static pods, and if a
// manifest changes then, it takes minutes to replace the pod.
func (n *Node) WaitReady(tb testing.TB) {
	tb.Helper()
	await.Until(tb, await.HangTimeout, n.Name+" is ready", func() (bool, string) {
		for name, p := range map[string]*program{"containerd": n.containerd, "kubelet": n.kubelet, "kube-proxy": n.proxy} {
			if !p.Running() {
				tb.Fatalf("%s has ended:\n%s", name, p.Output.Tail(2000))
			}
		}
		node, err := n.cluster.Client.CoreV1().Nodes().Get(tb.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if taint := lostTaint(node); taint != "" {
			return false, "it has the taint " + taint
		}
		return readySince(node, n.kubeletStarted)
	})
}

// lostTaint returns a taint that a node keeps for a short time after it is ready again, or "".
func lostTaint(node *corev1.Node) string {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return taint.Key
		}
	}
	return ""
}

func readySince(node *corev1.Node, since time.Time) (holds bool, seen string) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && condition.LastHeartbeatTime.After(since),
				fmt.Sprintf("%s at %s: %s", condition.Reason, condition.LastHeartbeatTime, condition.Message)
		}
	}
	return false, "its kubelet has not reported whether it is ready"
}

// Disk returns the path on this machine of a path on the node's disk.
func (n *Node) Disk(path string) string { return filepath.Join(n.dir, "disk", path) }

// remove ends the node and removes its files.
func (n *Node) remove() {
	if n.machine != nil {
		n.machine.off(n.life)
	}
	for _, group := range n.groups() {
		removeGroups(n.life, group)
	}
	if n.life.Failed() {
		artifacts.KeepFiles(n.life, n.Disk("var/log/pods"), "*/*/*.log")
		artifacts.KeepFiles(n.life, n.Disk("var/lib/ekco"), "*")
	}
	if err := os.RemoveAll(n.dir); err != nil {
		n.life.Errorf("node %s left something: %v", n.Name, err)
	}
}

// groups returns the control groups that the node may have left: its kubelet's, and those of its last containers, which
// containerd puts next to it.
func (n *Node) groups() []string {
	groups := []string{n.group}
	for _, kind := range []string{"containers", "sandboxes"} {
		dirs, _ := filepath.Glob(n.Disk("var/lib/containerd/io.containerd.grpc.v1.cri/" + kind + "/*")) // the pattern is valid
		for _, dir := range dirs {
			groups = append(groups, filepath.Join("k8s.io", filepath.Base(dir)))
		}
	}
	return groups
}

// command returns a command on the node. The command ends with its input and output, or with the node.
func (n *Node) command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(context.Background(), "nsenter", n.machine.within(append([]string{name}, args...))...)
}

func (n *Node) ctr(args ...string) (string, error) {
	output, err := n.command("ctr", append([]string{"--namespace", "k8s.io"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(output)), err
}
