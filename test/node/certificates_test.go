package nodetest

import (
	"fmt"
	"math/rand/v2"
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

// TestEKCORenewsTheControlPlaneOfARealNode is about the whole way: a pod that looks, one that renews, and
// what proves it, with a control plane that a real kubelet runs as static pods. It is the only primary, and the
// API that EKCO and the kubelet use is another. The scenes are in order.
func TestEKCORenewsTheControlPlaneOfARealNode(t *testing.T) {
	t.Parallel() // both wait for kubelets most of the time
	w := install(t, map[string]string{
		"rotate_certs": "true", "rotate_certs_image": "replicated/ekco:" + version.Get().Version, "min_ready_master_nodes": "1",
	}, "--primaries", "1", "--workers", "0")
	w.Kubectl(t, "delete", "node", "primary-1")
	w.operator(t)
	w.scale(t, 0)
	w.node.becomePrimary(t)
	c := &controlPlane{w}
	for _, scene := range []struct {
		name string
		run  func(*controlPlane, *testing.T)
	}{
		{"all are due", (*controlPlane).renewsAll},
		{"EKCO and its program are killed again and again", (*controlPlane).renewsAlthoughKilled},
		{"the disk is full", (*controlPlane).holdsForADiskThatIsFull},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(c, t) }) {
			return
		}
	}
}

func (c *controlPlane) renewsAll(t *testing.T) {
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
	history := c.mustEkco(t, "history", "-o", "json")
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
	await.Until(t, patience, "EKCO has renewed them", func() (bool, string) {
		for _, name := range renewable() {
			if time.Until(c.node.leaf(t, name).NotAfter) < 364*24*time.Hour {
				history, _ := c.ekco(t, "history", "--component", "certificate") // it may have been killed
				return false, history
			}
		}
		table, code := c.ekco(t, "certificates")
		return code == 0 && strings.Contains(table, "by renew-control-plane-real-1-") && !strings.Contains(table, "is at work"), table
	})
	c.node.judge(t)
	c.node.serves(t)
}

func (c *controlPlane) renewsAlthoughKilled(t *testing.T) {
	c.scale(t, 0)
	c.node.age(t, time.Hour, renewable()...)
	c.scale(t, 1)
	for killed := range 6 {
		moment := time.NewTimer(rand.N(8 * time.Second))
		<-moment.C
		if killed%2 == 0 {
			c.node.killRotation()
			continue
		}
		if err := syscall.Kill(c.operating(t).pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	c.awaitRenewed(t)
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
	before, pods := c.host(t, sums), c.node.static(t)
	c.scale(t, 1)
	t.Log(c.awaitHeld(t, "no space left on device"))
	if after := c.host(t, sums); after != before {
		t.Errorf("the files are\n%s\nand were\n%s", after, before)
	}
	if now := c.node.static(t); fmt.Sprint(now) != fmt.Sprint(pods) {
		t.Errorf("restarted are %v, before %v", now, pods)
	}
	c.host(t, "rm /etc/kubernetes/much")
	c.mustEkco(t, "retry", primaryFiles)
	await.Until(t, patience, "EKCO has renewed them", func() (bool, string) {
		_, err := c.node.command("openssl", "x509", "-checkend", "31000000", "-noout", "-in", "/etc/kubernetes/pki/apiserver.crt").Output()
		return err == nil && !strings.Contains(c.mustEkco(t, "certificates"), "is at work"), c.mustEkco(t, "explain", primaryFiles)
	})
}

func (c *controlPlane) restartEtcd(t *testing.T) {
	t.Helper()
	old := c.node.static(t)["etcd"]
	c.host(t, "pkill -x etcd")
	await.Until(t, patience, "etcd runs again", func() (bool, string) {
		now := c.node.static(t)["etcd"]
		return now != "" && now != old, now
	})
	c.node.awaitAPI(t)
}

// awaitHeld waits until the primary's certificates are held for a reason, and returns it.
func (c *controlPlane) awaitHeld(t *testing.T, reason string) (said string) {
	t.Helper()
	await.Until(t, patience, "EKCO says why they could not be renewed", func() (bool, string) {
		said = c.mustEkco(t, "explain", primaryFiles)
		return strings.Contains(said, reason), said
	})
	return said
}

func (c *controlPlane) host(t *testing.T, script string) string {
	t.Helper()
	output, err := c.node.command("bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, output)
	}
	return string(output)
}
