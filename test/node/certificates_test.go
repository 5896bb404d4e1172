package nodetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/await"
)

// component is a stand-in for one of the control plane. It serves at a port what it read at its
// start.
type component struct {
	name, reads string
	port        int
}

var standIns = []component{
	{"kube-apiserver", "pki/apiserver-kubelet-client.crt", 16443},
	{"kube-controller-manager", "controller-manager.conf", 16257},
	{"kube-scheduler", "scheduler.conf", 16259},
}

// controlPlane is a real node with the files that kubeadm leaves, and stand-ins for the components
// that a real kubelet runs as static pods.
type controlPlane struct {
	*Cluster
	node *Node
	// without are files that are not there.
	without []string
}

// TestRotateCertsWithARealKubelet is about "ekco rotate-certs" on a host: how a kubelet restarts a
// static pod of which the manifest has another annotation, and how that is seen there.
func TestRotateCertsWithARealKubelet(t *testing.T) {
	c := &controlPlane{Cluster: StartCluster(t, "--primaries", "1", "--workers", "0")}
	c.node = c.Start(t, "real-1", primary, taskImage)
	c.node.WaitReady(t)
	c.install(t)
	c.expires(t, 5)
	before := c.pods(t)

	began := time.Now()
	output, code := c.rotate(t)
	t.Logf("it took %s:\n%s", time.Since(began).Round(100*time.Millisecond), output)
	if code != 0 || !strings.Contains(output, "11 certificates were renewed, 3 components restarted") {
		t.Fatalf("exit code %d", code)
	}
	c.inUse(t)
	for name, hash := range c.pods(t) {
		if hash == before[name] {
			t.Errorf("the pod of %s is the same", name)
		}
	}

	t.Run("one that does not come back", func(t *testing.T) {
		c.expires(t, 5)
		old := c.read(t, "scheduler.conf")
		c.host(t, "touch", "/etc/kubernetes/broken")
		output, code := c.rotate(t, "--patience", "45s") // a kubelet takes 15 s to put another pod in the place of one
		t.Logf("%s", output)
		// The API server's stand-in has its file elsewhere, where nothing is broken.
		if code != 1 || strings.Count(output, `its last words: "I cannot go on"`) != 2 || !strings.Contains(output, "Back: kube-apiserver answers") {
			t.Errorf("exit code %d", code)
		}
		if c.read(t, "scheduler.conf") != old {
			t.Error("it has not its old kubeconfig")
		}
		c.host(t, "rm", "/etc/kubernetes/broken")
		c.inUse(t)
	})
	t.Run("it is killed while it waits for the API server", func(t *testing.T) {
		c.expires(t, 5)
		command := c.node.command("/node/ekco", "rotate-certs")
		said, err := command.StdoutPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(said); lines.Scan() && !strings.HasPrefix(lines.Text(), "Restarting kube-apiserver"); {
			t.Log(lines.Text())
		}
		c.host(t, "sh", "-c", "kill -9 $(pgrep -f '[r]otate-certs')")
		_ = command.Wait() // it was killed
		output, code := c.rotate(t)
		if code != 0 || !strings.Contains(output, "An earlier rotation was interrupted") || !strings.Contains(output, "Back: kube-scheduler answers") {
			t.Errorf("exit code %d:\n%s", code, output)
		}
		c.inUse(t)
	})
	t.Run("the kubelet is away", func(t *testing.T) {
		c.expires(t, 5)
		manifest := c.read(t, "manifests/kube-scheduler.yaml")
		c.node.kubelet.Kill()
		output, code := c.rotate(t, "--patience", "5s")
		if code != 1 || !strings.Contains(output, "the kubelet has not started it anew") || c.read(t, "manifests/kube-scheduler.yaml") != manifest {
			t.Errorf("exit code %d:\n%s", code, output)
		}
		c.node.startKubelet(t)
		c.node.WaitReady(t)
		output, code = c.rotate(t)
		if code != 0 {
			t.Errorf("exit code %d:\n%s", code, output)
		}
		c.inUse(t)
	})
}

// TestEKCORenewsTheControlPlaneOfARealNode is about the whole way: a pod that looks, one that renews, and
// what proves it, on the only primary. Nothing serves at the port of API servers there, so that it has
// no such certificate.
func TestEKCORenewsTheControlPlaneOfARealNode(t *testing.T) {
	w := install(t, map[string]string{
		"rotate_certs": "true", "rotate_certs_image": "replicated/ekco:" + version.Get().Version, "min_ready_master_nodes": "1",
	}, "--primaries", "1", "--workers", "0")
	w.Kubectl(t, "delete", "node", "primary-1")
	w.operator(t)
	w.scale(t, 0)
	c := &controlPlane{Cluster: w.Cluster, node: w.node, without: []string{"pki/apiserver.crt", "pki/apiserver.key"}}
	c.install(t)
	c.expires(t, 5)
	before := c.pods(t)

	w.scale(t, 1)
	began := time.Now()
	w.operator(t)
	await.Until(t, patience, "EKCO has renewed them", func() (bool, string) {
		table := w.mustEkco(t, "certificates")
		return strings.Contains(table, "by renew-control-plane-real-1-") && !strings.Contains(table, "is at work"), w.mustEkco(t, "history", "--component", "certificate")
	})
	t.Logf("%s after EKCO was started:\n%s", time.Since(began).Round(100*time.Millisecond), w.mustEkco(t, "certificates"))
	c.inUse(t)
	for name, hash := range c.pods(t) {
		if hash == before[name] {
			t.Errorf("the pod of %s is the same", name)
		}
	}
	history := w.mustEkco(t, "history", "-o", "json")
	for _, secret := range []string{"PRIVATE", "LS0tLS1CRUdJTiB"} {
		if strings.Contains(history, secret) {
			t.Errorf("there is %q on record", secret)
		}
	}
	if noted := w.Kubectl(t, "--namespace", "kurl", "get", "configmap", "rotate-certs", "--output", "jsonpath={.data}"); !strings.Contains(noted, "rotate-certs-last-attempted") {
		t.Errorf("noted is %s", noted)
	}
}

// install puts EKCO and the manifests on the node.
func (c *controlPlane) install(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(c.node.dir, "settings", "ekco"), "./cmd/ekco")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	c.made(t, 300)
	for _, s := range standIns {
		manifest := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: kube-system}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 5
  containers:
  - name: %[1]s
    image: %[2]s
    imagePullPolicy: Never
    args: [serve, "127.0.0.1:%[3]d=/etc/kubernetes/%[4]s"]
    readinessProbe: {periodSeconds: 1, httpGet: {host: 127.0.0.1, path: /healthz, port: %[3]d}}
    volumeMounts: [{name: etc, mountPath: /etc/kubernetes, readOnly: true}]
  volumes: [{name: etc, hostPath: {path: /etc/kubernetes, type: Directory}}]
`, s.name, imageOf("task"), s.port, s.reads)
		path := filepath.Join(c.node.dir, "settings", s.name+".yaml")
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		c.host(t, "mkdir", "-p", "/etc/kubernetes/manifests")
		c.host(t, "cp", "/node/"+s.name+".yaml", "/etc/kubernetes/manifests/"+s.name+".yaml")
	}
	c.inUse(t)
}

// made has the node have certificates that are valid for so many days.
func (c *controlPlane) made(t *testing.T, days int) {
	t.Helper()
	dir := filepath.Join(c.node.dir, "settings", "kubernetes")
	host := &primarytest.Host{T: t, Dir: dir, NewKey: certificates.NewKey, Kind: certificates.RSA2048, Server: "https://127.0.0.1:1"}
	host.Make(time.Now().AddDate(0, 0, days))
	for _, path := range append([]string{"manifests"}, c.without...) {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	c.host(t, "cp", "-a", "/node/kubernetes/.", "/etc/kubernetes/")
}

// expires is made, with components that have started with that.
func (c *controlPlane) expires(t *testing.T, days int) {
	t.Helper()
	c.made(t, days)
	for _, s := range standIns {
		c.host(t, "sh", "-c", "kill $(pgrep -f '[1]27.0.0.1:"+fmt.Sprint(s.port)+"=')")
	}
	c.inUse(t)
}

// inUse waits until each component has what is in its file.
func (c *controlPlane) inUse(t *testing.T) {
	t.Helper()
	for _, s := range standIns {
		await.Until(t, patience, s.name+" has what is in its file", func() (bool, string) {
			output, err := c.node.command("bash", "-c", fmt.Sprintf(
				`exec 3<>/dev/tcp/127.0.0.1/%d; printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3; tail -n 1 <&3; sha256sum < /etc/kubernetes/%s`, s.port, s.reads)).CombinedOutput()
			return err == nil && len(output) > 128 && string(output[:64]) == string(output[64:128]), string(output)
		})
	}
}

// pods are the hashes of the static pods that the API server has, by component.
func (c *controlPlane) pods(t *testing.T) map[string]string {
	t.Helper()
	hashes := map[string]string{}
	for _, s := range standIns {
		await.Until(t, patience, "the API server has "+s.name+" as it is on the node", func() (bool, string) {
			pod, err := c.Client.CoreV1().Pods("kube-system").Get(t.Context(), s.name+"-real-1", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			hash := pod.Annotations["kubernetes.io/config.hash"]
			hashes[s.name] = hash
			_, err = os.Stat(c.node.Disk("var/log/pods/kube-system_" + s.name + "-real-1_" + hash + "/" + s.name + "/0.log"))
			return err == nil && isReady(pod), fmt.Sprint(hash, err)
		})
	}
	return hashes
}

func (c *controlPlane) host(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := c.node.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, output)
	}
}

func (c *controlPlane) read(t *testing.T, path string) string {
	t.Helper()
	output, err := c.node.command("cat", "/etc/kubernetes/"+path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func (c *controlPlane) rotate(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	command := c.node.command("/node/ekco", append([]string{"rotate-certs"}, args...)...)
	said, _ := command.CombinedOutput() // the exit code says it
	return string(said), command.ProcessState.ExitCode()
}
