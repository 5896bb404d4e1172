package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/plane"
	"github.com/replicatedhq/ekco/test/rig"
)

// binaries are what the tests drive; TestMain builds them.
var binaries struct {
	ekco, controlplane string
}

// cluster is a real control plane with simulated nodes.
type cluster struct {
	t      *testing.T
	plane  *plane.Plane
	dir    string
	config *rest.Config
	client *kubernetes.Clientset
}

// startCluster starts a control plane with 3 primaries and 3 workers; args add
// to that.
func startCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	p := plane.Start(t, binaries.controlplane, append([]string{"--primaries", "3", "--workers", "3"}, args...)...)
	return &cluster{t: t, plane: p, dir: p.Dir, config: p.Config, client: p.Client}
}

// kubectl runs kubectl as the cluster's administrator.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.plane.Kubectl(c.t, args...)
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

// applyShipped applies manifests of deploy: files, and then directories as users apply them. It applies all files with
// one call of kubectl, whose start takes half a second of CPU time.
func (c *cluster) applyShipped(names ...string) {
	c.t.Helper()
	files, directories := []string{"apply"}, [][]string(nil)
	for _, name := range names {
		path := filepath.Join("..", "..", "deploy", name)
		if filepath.Ext(name) == ".yaml" {
			files = append(files, "-f", path)
		} else {
			directories = append(directories, []string{"apply", "-k", path})
		}
	}
	if len(files) > 1 {
		c.kubectl(files...)
	}
	for _, directory := range directories {
		c.kubectl(directory...)
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
	eventually(c.t, await.HangTimeout, "the pods run", func() (bool, string) {
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
	eventually(c.t, await.HangTimeout, name+" is tainted unreachable", func() (bool, string) {
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

// atOnce is how many tests run at once, unless -parallel says otherwise. They also
// wait, so it may be more than there are cores. With more, commands of Ceph get no
// answer in time on a slow machine. The groups of TestMinIO, which take the longest,
// are three.
const atOnce = 3

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVariable); socket != "" {
		os.Exit(runAsHandler(socket))
	}
	rig.Main(m, rig.Options{
		Fetch: []string{
			"../controlplane/build.sh", "../minio/server/build.sh", "../ceph/install.sh", "../registry/install.sh",
			"../loadbalancer/install.sh bookworm", "../loadbalancer/install.sh trixie", "../crds/fetch.sh", rig.EKCOModules,
		},
		Prepare: func(ctx context.Context, dir string) (err error) {
			binaries.ekco = filepath.Join(dir, "ekco")
			if err = rig.BuildEKCO(ctx, "../..", binaries.ekco); err != nil {
				return err
			}
			binaries.controlplane, err = rig.Run(ctx, "../controlplane/build.sh")
			return err
		},
		Parallel:           atOnce,
		SkipGoroutineCheck: true,
	})
}
