package e2e

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/child"
)

// binaries are what the tests drive; TestMain builds them.
var binaries struct {
	ekco, controlplane string
}

// cluster is a real control plane with simulated nodes.
type cluster struct {
	t      *testing.T
	dir    string
	config *rest.Config
	client *kubernetes.Clientset
}

var kubeconfigLine = regexp.MustCompile(`(?m)^KUBECONFIG=(.+)$`)

// startCluster starts a control plane with 3 primaries and 3 workers; args add
// to that.
func startCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	dir := t.TempDir()
	up := child.Start(t, binaries.controlplane, append([]string{"up", "--dir", dir, "--primaries", "3", "--workers", "3"}, args...)...)
	eventually(t, patience, "the control plane is up", func() (bool, string) {
		if !up.Running() {
			t.Fatalf("the control plane did not start:\n%s", up.Output.Tail(2000))
		}
		return kubeconfigLine.MatchString(up.Output.String()), up.Output.Tail(500)
	})
	kubeconfig := kubeconfigLine.FindStringSubmatch(up.Output.String())[1]
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, dir: dir, config: config, client: client}
}

// kubectl runs kubectl as the cluster's administrator.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(binaries.controlplane, append([]string{"kubectl", "--kubeconfig", filepath.Join(c.dir, "kubeconfig")}, args...)...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// node tells the control plane to lose, return, replace or add a node.
func (c *cluster) node(verb, name string, args ...string) {
	c.t.Helper()
	all := append([]string{"node", verb, name, "--dir", c.dir}, args...)
	if output, err := exec.Command(binaries.controlplane, all...).CombinedOutput(); err != nil {
		c.t.Fatalf("controlplane %s: %v\n%s", strings.Join(all, " "), err, output)
	}
}

// applyShippedRBAC creates what kURL installs around EKCO: namespace, service
// account and exactly its permissions.
func (c *cluster) applyShippedRBAC() {
	c.t.Helper()
	c.applyShipped("namespace.yaml", "rbac.yaml")
}

// applyShipped applies manifests of deploy.
func (c *cluster) applyShipped(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.kubectl("apply", "-f", filepath.Join("..", "..", "deploy", name))
	}
}

// kubeconfigFor returns a kubeconfig with a token of a service account; with a
// gate, requests go through it.
func (c *cluster) kubeconfigFor(serviceAccount string, through *gate) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	output, err := exec.Command(binaries.controlplane, "kubeconfig", "--dir", c.dir,
		"--service-account", serviceAccount, "--out", path).CombinedOutput()
	if err != nil {
		c.t.Fatalf("make a kubeconfig for %s: %v\n%s", serviceAccount, err, output)
	}
	if through != nil {
		through.Redirect(c.t, path)
	}
	return path
}

// runPods puts a workload on a node, as pods that stay until their node lets
// them go.
func (c *cluster) runPods(node string, names ...string) {
	c.t.Helper()
	for _, name := range names {
		grace := int64(1)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec: corev1.PodSpec{
				NodeName: node, TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{Name: "app", Image: "app:1"}},
			},
		}
		if _, err := c.client.CoreV1().Pods("default").Create(c.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	eventually(c.t, patience, "the pods run", func() (bool, string) {
		for _, name := range names {
			pod, err := c.client.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
			if err != nil || pod.Status.Phase != corev1.PodRunning {
				return false, name
			}
		}
		return true, ""
	})
}

func (c *cluster) podExists(name string) bool {
	c.t.Helper()
	return c.exists(name, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

func (c *cluster) nodeExists(name string) bool {
	c.t.Helper()
	return c.exists(name, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

func (c *cluster) exists(name string, get func(context.Context) error) bool {
	c.t.Helper()
	err := get(context.WithoutCancel(c.t.Context()))
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatalf("read %s: %v", name, err)
	}
	return err == nil
}

// waitUnreachable waits until the control plane has given the node up.
func (c *cluster) waitUnreachable(name string) {
	c.t.Helper()
	eventually(c.t, patience, name+" is tainted unreachable", func() (bool, string) {
		node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute {
				return true, ""
			}
		}
		return false, "no taint"
	})
}

// atOnce is how many tests run at once, unless -parallel says otherwise. They
// mostly wait for leases to run out, so it may be more than there are cores.
// With four, two cores were at load averages of 15 to 30 for most of the time, and
// now and then a test met a Ceph or a proxy that had no turn for minutes; three take
// about as long, since two of them are long rows.
const atOnce = 3

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVariable); socket != "" {
		os.Exit(runAsHandler(socket))
	}
	code := func() int {
		if err := runAtOnce(atOnce); err != nil {
			panic(err)
		}
		dir, err := os.MkdirTemp("", "ekco-e2e-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binaries.ekco = filepath.Join(dir, "ekco")
		if output, err := exec.Command("go", "build", "-o", binaries.ekco, "../../cmd/ekco").CombinedOutput(); err != nil {
			panic("build ekco: " + string(output))
		}
		build := exec.Command("../controlplane/build.sh")
		build.Stderr = os.Stderr
		path, err := build.Output()
		if err != nil {
			panic("build the control plane: " + err.Error())
		}
		binaries.controlplane = strings.TrimSpace(string(path))
		return m.Run()
	}()
	os.Exit(code)
}

// runAtOnce sets how many tests run at once, unless the command line does.
func runAtOnce(n int) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(n))
}
