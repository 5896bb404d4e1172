package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/test/plane"
)

// cluster is a real control plane with simulated nodes, on which EKCO has the
// permissions of deploy/rbac.yaml.
type cluster struct {
	program, dir string
	config       *rest.Config
	client       *kubernetes.Clientset
	workers      int
	podsPerNode  int
}

// startCluster starts a control plane with 3 primaries and as many workers as
// asked for. It ends with the benchmark.
func startCluster(b *testing.B, workers, podsPerNode int) *cluster {
	b.Helper()
	c := startPlane(b, "--primaries", "3", "--workers", "0", "--scale")
	c.workers, c.podsPerNode = workers, podsPerNode
	c.fill(b)
	return c
}

// startPlane starts a control plane on which EKCO has its permissions.
func startPlane(b *testing.B, args ...string) *cluster {
	b.Helper()
	p := plane.Start(b, controlplaneBinary(b), args...)
	c := &cluster{program: p.Program, dir: p.Dir, config: p.Config, client: p.Client}
	for _, name := range []string{"namespace.yaml", "rbac.yaml"} {
		c.kubectl(b, "apply", "-f", filepath.Join("..", "..", "deploy", name))
	}
	return c
}

// kubectl runs kubectl as the cluster's administrator.
func (c *cluster) kubectl(b *testing.B, args ...string) string {
	b.Helper()
	return run(b, c.program, append([]string{"kubectl", "--kubeconfig", filepath.Join(c.dir, "kubeconfig")}, args...)...)
}

// applyObject applies an object.
func (c *cluster) applyObject(b *testing.B, object any) {
	b.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	c.apply(b, string(text))
}

func (c *cluster) apply(b *testing.B, manifest string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "manifest")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		b.Fatal(err)
	}
	c.kubectl(b, "apply", "-f", path)
}

// fill makes the workers and pods that are missing, and waits until all run.
func (c *cluster) fill(b *testing.B) {
	b.Helper()
	if c.workers == 0 {
		return
	}
	run(b, c.program, "scale", "--dir", c.dir, "--nodes", strconv.Itoa(c.workers), "--pods-per-node", strconv.Itoa(c.podsPerNode))
}

// nodes tells the control plane to lose or return nodes, and waits until it
// has noticed.
func (c *cluster) nodes(b *testing.B, verb string, names []string) {
	b.Helper()
	run(b, c.program, append([]string{"node", verb, "--dir", c.dir, "--wait", "5m"}, names...)...)
}

// workers returns the names of count workers after the first skip ones.
func workers(skip, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("scale-%05d", skip+i+1)
	}
	return names
}

// unreachableSince returns when the control plane gave the node up, in the
// API's resolution of a second.
func (c *cluster) unreachableSince(b *testing.B, name string) time.Time {
	b.Helper()
	node, err := c.client.CoreV1().Nodes().Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute && taint.TimeAdded != nil {
			return taint.TimeAdded.Time
		}
	}
	b.Fatalf("node %s has no taint %s", name, corev1.TaintNodeUnreachable)
	return time.Time{}
}

// kubeconfig returns one of service account kurl/ekco; with a recorder,
// requests go through it.
func (c *cluster) kubeconfig(b *testing.B, through *recorder) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "kubeconfig")
	run(b, c.program, "kubeconfig", "--dir", c.dir, "--service-account", "kurl/ekco", "--out", path)
	if through != nil {
		through.Redirect(b, path)
	}
	return path
}

// logLoad says how busy the machine was before a measurement: figures count
// only when nothing else was running.
func logLoad(b *testing.B) {
	b.Helper()
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("load averages before: %s", content)
}
