package nodetest

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/await"
)

// primaryFiles is how EKCO calls the certificates in the node's files.
const primaryFiles = "certificate/control-plane/real-1"

// controlPlane is a cluster with EKCO in it, on a node that kubeadm has made a primary.
type controlPlane struct{ *world }

// TestEKCORenewsTheControlPlaneOfARealNode tests the whole renewal: the pod that reads the certificates, the
// pod that renews them, and the verification, with a control plane that a real kubelet runs as static pods.
// It is the only primary, and the API that EKCO and the kubelet use is another. The scenes are in order, and
// each says what only a real node shows.
func TestEKCORenewsTheControlPlaneOfARealNode(t *testing.T) {
	t.Parallel()
	w := installQuick(t, map[string]string{
		"rotate_certs": "true", "rotate_certs_image": "replicated/ekco:" + version.Get().Version, "min_ready_master_nodes": "1",
		"rotate_certs_check_interval": "20s",
	}, "--primaries", "1", "--workers", "0")
	w.Kubectl(t, "delete", "node", "primary-1")
	w.operator(t)
	c := &controlPlane{w}
	for _, scene := range []struct {
		name string
		run  func(*controlPlane, *testing.T)
	}{
		// A kubelet judges a client certificate, and serves its own.
		{"KOTS gets what kubelets know the primary by", (*controlPlane).givesKOTSItsClient},
		// Static pods are restarted by a kubelet, and use what is new.
		{"all are due", (*controlPlane).renewsAll},
		// The kubelet restarts EKCO, but not its program.
		{"EKCO and its program are killed again and again", (*controlPlane).renewsAlthoughKilled},
		// A file system without space, while static pods read from it.
		{"the disk is full", (*controlPlane).holdsForADiskThatIsFull},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(c, t) }) {
			return
		}
	}
}

func (c *controlPlane) renewsAll(t *testing.T) {
	c.scale(t, 0)
	c.node.becomePrimary(t)
	before := c.node.static(t)
	c.scale(t, 1)
	began := time.Now()
	c.awaitRenewed(t)
	t.Logf("%s after EKCO was started:\n%s", time.Since(began).Round(100*time.Millisecond), c.mustEkco(t, "certificates"))
	after := c.node.static(t)
	for _, component := range staticPods {
		if restarted := before[component] != after[component]; restarted != (component != "etcd") {
			t.Errorf("%s: restarted is %v", component, restarted)
		}
	}
	history, err := c.read(t, "history", "-o", "json")
	if err != nil {
		t.Errorf("%v: %s", err, history)
	}
	for _, secret := range []string{"PRIVATE", "LS0tLS1CRUdJTiB"} {
		if strings.Contains(history, secret) {
			t.Errorf("there is %q on record", secret)
		}
	}
	if noted := c.Kubectl(t, "--namespace", "kurl", "get", "configmap", "rotate-certs", "--output", "jsonpath={.data}"); !strings.Contains(noted, "rotate-certs-last-attempted") {
		t.Errorf("noted is %s", noted)
	}
}

// awaitRenewed waits until all certificates of the primary are new, and served.
func (c *controlPlane) awaitRenewed(t *testing.T) {
	t.Helper()
	await.Looking(t, readInterval, await.HangTimeout, "EKCO has renewed them", func() (bool, string) {
		for _, name := range renewable() {
			if time.Until(c.node.leaf(t, name).NotAfter) < 364*24*time.Hour {
				history, _ := c.read(t, "history", "--component", "certificate") // it may have been killed
				return false, history
			}
		}
		explained, err := c.read(t, "explain", primaryFiles)
		return err == nil && strings.Contains(explained, "No action is open."), explained
	})
	if table, err := c.read(t, "certificates"); err != nil || !strings.Contains(table, "by renew-control-plane-real-1-") {
		t.Errorf("%v: it does not say who has renewed them:\n%s", err, table)
	}
	c.node.judge(t)
	c.node.serves(t)
}

// renewsAlthoughKilled kills EKCO while its program renews, then the program while the API server is restarted, which
// is tried again after minutes or when an administrator says so, and then EKCO again.
func (c *controlPlane) renewsAlthoughKilled(t *testing.T) {
	const held = "EKCO retries at"
	for tries, killed := 0, false; !killed; tries++ { // until the program is killed before its work is done
		if tries == 5 {
			t.Fatalf("the program ended before it was killed, %d times", tries)
		}
		c.scale(t, 0)
		c.node.age(t, time.Hour, renewable()...)
		manifest := c.node.Disk("etc/kubernetes/manifests/kube-apiserver.yaml")
		old := mustRead(t, manifest)
		c.scale(t, 1)
		c.killWhileItRenews(t)
		// The check must be quick: Until waits four times as long as it took, and the program goes on meanwhile.
		await.Until(t, await.HangTimeout, "the program changes the manifest", func() (bool, string) {
			return mustRead(t, manifest) != old, old
		})
		c.node.killRotation()
		c.awaitRead(t, "the program was killed, or had ended", func(explained string) bool {
			killed = strings.Contains(explained, held)
			return killed || strings.Contains(explained, "No action is open.")
		}, "explain", primaryFiles)
	}
	c.retryHeld(t, held)
	c.killWhileItRenews(t)
	c.awaitRenewed(t)
}

// killWhileItRenews kills EKCO. Its program waits meanwhile, and goes on when EKCO is back.
func (c *controlPlane) killWhileItRenews(t *testing.T) {
	t.Helper()
	for _, program := range c.awaitRotation(t) {
		if err := syscall.Kill(program, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(program, syscall.SIGCONT) }() // what ended meanwhile is seen by who waits
	}
	o := c.operating(t)
	if err := syscall.Kill(o.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.awaitRestart(t, o, "Error")
}

// awaitRotation waits until the program that renews runs. The check is quick, as in renewsAlthoughKilled.
func (c *controlPlane) awaitRotation(t *testing.T) (programs []int) {
	t.Helper()
	await.Until(t, await.HangTimeout, "certificates are renewed", func() (bool, string) {
		programs = c.onNode(t, func(command string) bool { return strings.HasPrefix(command, "/usr/bin/ekco host-task rotate-certs ") })
		return len(programs) > 0, ""
	})
	return programs
}

// holdsForADiskThatIsFull is the last scene: the disk is one that is not seen from outside the node.
func (c *controlPlane) holdsForADiskThatIsFull(t *testing.T) {
	const small = "cp -a /etc/kubernetes /var/small && mount -t tmpfs -o size=512k small /etc/kubernetes && cp -a /var/small/. /etc/kubernetes"
	const fill = "! dd if=/dev/zero of=/etc/kubernetes/much status=none"
	const sums = "cd /etc/kubernetes && find . -type f ! -name much | sort | xargs sha256sum"
	c.scale(t, 0)
	c.node.age(t, time.Hour, renewable()...)
	c.host(t, small)
	c.restartEtcd(t) // nobody else does, and it has its files from the other disk
	c.host(t, fill)
	before := c.host(t, sums) // with the manifests: nobody is restarted either
	c.scale(t, 1)
	c.awaitHeld(t, "no space left on device")
	if after := c.host(t, sums); after != before {
		t.Errorf("the files are\n%s\nand were\n%s", after, before)
	}
	c.host(t, "rm /etc/kubernetes/much")
	c.retryHeld(t, "no space left on device")
	await.Looking(t, readInterval, await.HangTimeout, "EKCO has renewed them", func() (bool, string) {
		_, err := c.node.command("openssl", "x509", "-checkend", "31000000", "-noout", "-in", "/etc/kubernetes/pki/apiserver.crt").Output()
		table, failed := c.read(t, "certificates")
		return err == nil && failed == nil && !strings.Contains(table, "is running"), table
	})
}

func (c *controlPlane) restartEtcd(t *testing.T) {
	t.Helper()
	old := c.node.static(t)["etcd"]
	c.host(t, "pkill -x etcd")
	await.Until(t, await.HangTimeout, "etcd runs again", func() (bool, string) {
		now := c.node.static(t)["etcd"]
		return now != "" && now != old, now
	})
	c.node.awaitAPI(t)
}

// awaitHeld waits until the primary's certificates are held for a reason, and returns it.
func (c *controlPlane) awaitHeld(t *testing.T, reason string) (said string) {
	t.Helper()
	c.awaitRead(t, "EKCO says why they could not be renewed", func(explained string) bool {
		said = explained
		return strings.Contains(said, reason)
	}, "explain", primaryFiles)
	return said
}

// retryHeld has a renewal that is held for a reason tried again at once. There may be a look at the certificates, too.
func (c *controlPlane) retryHeld(t *testing.T, reason string) {
	t.Helper()
	said := c.awaitHeld(t, reason)
	renewal := regexp.MustCompile(`renew-control-plane-real-1-[0-9a-f-]+`).FindString(said)
	c.mustEkco(t, "retry", renewal)
}

func (c *controlPlane) host(t *testing.T, script string) string {
	t.Helper()
	output, err := c.node.command("bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, output)
	}
	return string(output)
}
