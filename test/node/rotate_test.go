package nodetest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/await"
)

// TestACommandRenewsTheCertificatesOfAPrimary is about rotate-certs on a host that kubeadm has made a
// primary, with a real kubelet and static pods. The parts are in order.
func TestACommandRenewsTheCertificatesOfAPrimary(t *testing.T) {
	c := StartCluster(t, "--primaries", "1", "--workers", "0")
	archive := filepath.Join(t.TempDir(), "controlplane.tar")
	if err := writeControlPlaneImage(archive); err != nil {
		t.Fatal(err)
	}
	n := c.Start(t, "real-1", primary, archive)
	n.WaitReady(t)
	n.Init(t, time.Hour)
	n.installEKCO(t)
	for _, scene := range []struct {
		name string
		run  func(*testing.T, *Node)
	}{
		{"all that is due, and who needs it is restarted", renewsAll},
		{"nothing is due, and nothing is restarted", renewsNothing},
		{"it is killed again and again", renewsAlthoughKilled},
		{"a component does not come back", putsBack},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(t, n) }) {
			return
		}
	}
}

// installEKCO puts the program on the host.
func (n *Node) installEKCO(t testing.TB) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", n.Disk("var/lib/ekco/ekco"), "../../cmd/ekco")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build ekco: %v: %s", err, output)
	}
}

func (n *Node) rotate(args ...string) *exec.Cmd {
	return n.command("/var/lib/ekco/ekco", append([]string{"rotate-certs", "--ttl", "720h"}, args...)...)
}

// leaf returns the certificate of one of kubeadm's files.
func (n *Node) leaf(t testing.TB, name string) *x509.Certificate {
	t.Helper()
	path := n.Disk("etc/kubernetes/" + name)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".conf") {
		config, err := clientcmd.Load(content)
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range config.AuthInfos {
			content = user.ClientCertificateData
		}
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("%s is not in PEM", path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// static returns the pod that the kubelet runs of each component, with how often its container
// was started.
func (n *Node) static(t testing.TB) map[string]string {
	t.Helper()
	pods := map[string]string{}
	for _, name := range staticPods {
		output, err := n.command("ctr", "--namespace", "k8s.io", "containers", "list", "labels.\"io.kubernetes.container.name\"=="+name, "--quiet").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		tasks, err := n.ctr("tasks", "list")
		if err != nil {
			t.Fatal(err)
		}
		for id := range strings.FieldsSeq(string(output)) {
			if regexp.MustCompile(id + `\s+\d+\s+RUNNING`).MatchString(tasks) {
				pods[name] = id
			}
		}
	}
	return pods
}

// serves waits until the control plane works with what is in its files: the API server answers
// an administrator and shows its new certificate, and the others renew their leases.
func (n *Node) serves(t testing.TB) {
	t.Helper()
	await.Until(t, patience, "the API server shows what is in its file", func() (bool, string) {
		output, err := n.command("openssl", "s_client", "-connect", "127.0.0.1:6443", "-CAfile", "/etc/kubernetes/pki/ca.crt", "-verify_return_error", "-showcerts").Output()
		block, _ := pem.Decode(output)
		return err == nil && block != nil && bytes.Equal(block.Bytes, n.leaf(t, "pki/apiserver.crt").Raw), fmt.Sprint(err)
	})
	for _, component := range staticPods[2:] {
		renewed := func() string {
			output, err := n.ownKubectl("--namespace", "kube-system", "get", "lease", component, "--output", "jsonpath={.spec.renewTime}")
			if err != nil {
				return ""
			}
			return output
		}
		var first string
		await.Until(t, patience, component+" renews its lease", func() (bool, string) {
			now := renewed()
			if first == "" {
				first = now
			}
			return now != "" && now != first, now
		})
	}
}

func (n *Node) judge(t testing.TB) {
	t.Helper()
	for leaf, ca := range leaves {
		usage := "sslclient"
		if leaf == "apiserver" || leaf == "etcd/server" {
			usage = "sslserver"
		}
		if output, err := n.command("openssl", "verify", "-x509_strict", "-purpose", usage, "-CAfile", "/etc/kubernetes/pki/"+ca+".crt", "/etc/kubernetes/pki/"+leaf+".crt").CombinedOutput(); err != nil {
			t.Errorf("openssl: %v: %s", err, output)
		}
	}
	for _, name := range renewable() {
		if left := time.Until(n.leaf(t, name).NotAfter); left < 364*24*time.Hour {
			t.Errorf("%s is valid for %s", name, left)
		}
	}
}

func renewsAll(t *testing.T, n *Node) {
	before := n.static(t)
	began := time.Now()
	output, err := n.rotate().CombinedOutput()
	t.Logf("after %s:\n%s", time.Since(began).Round(100*time.Millisecond), output)
	if err != nil || !strings.Contains(string(output), "11 certificates were renewed, 3 components restarted, 0 are missing") {
		t.Fatalf("%v", err)
	}
	n.judge(t)
	n.serves(t)
	after := n.static(t)
	for _, component := range staticPods {
		if restarted := before[component] != after[component]; restarted != (component != "etcd") {
			t.Errorf("%s: restarted is %v", component, restarted)
		}
	}
}

func renewsNothing(t *testing.T, n *Node) {
	before := n.static(t)
	output, err := n.rotate().CombinedOutput()
	if err != nil || !strings.Contains(string(output), "0 certificates were renewed, 0 components restarted, 0 are missing") {
		t.Errorf("%v: %s", err, output)
	}
	if after := n.static(t); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("restarted are %v, before %v", after, before)
	}
}

// renewsAlthoughKilled kills it at random moments, until it has done all.
func renewsAlthoughKilled(t *testing.T, n *Node) {
	n.age(t, time.Hour, renewable()...)
	for killed := 0; ; {
		command := n.rotate()
		var output bytes.Buffer
		command.Stdout, command.Stderr = &output, &output
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if killed++; killed > 8 {
			if err := command.Wait(); err != nil {
				t.Fatalf("after %d kills: %v: %s", killed-1, err, output.String())
			}
			t.Logf("the last of %d:\n%s", killed, output.String())
			break
		}
		moment := time.NewTimer(rand.N(3 * time.Second))
		<-moment.C
		// The program itself, too: nsenter has started it and does not take it along.
		_, _ = n.command("pkill", "--signal", "KILL", "--full", "^/var/lib/ekco/ekco rotate-certs").CombinedOutput() // it fails if it has ended
		_ = command.Wait()                                                                                           // it was killed
	}
	n.judge(t)
	n.serves(t)
}

// putsBack: the scheduler's image is gone, so that no new pod of it can start.
func putsBack(t *testing.T, n *Node) {
	n.age(t, time.Hour, "scheduler.conf", "admin.conf")
	old := n.leaf(t, "scheduler.conf")
	image := "ekco.test/kube-scheduler:" + kubernetesVersion
	if output, err := n.ctr("image", "tag", image, "ekco.test/kept:1"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if output, err := n.ctr("image", "remove", image); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	output, err := n.rotate("--patience", "20s").CombinedOutput()
	t.Logf("it says:\n%s", output)
	lines := strings.Split(string(output), "\n")
	if err == nil || !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "Error: kube-scheduler has not come back with its new certificates within 20s")
	}) {
		t.Errorf("%v", err)
	}
	if !n.leaf(t, "scheduler.conf").Equal(old) {
		t.Error("the scheduler has not got back what it had")
	}
	if left := time.Until(n.leaf(t, "admin.conf").NotAfter); left < 364*24*time.Hour {
		t.Errorf("the administrator's is valid for %s", left)
	}
	if output, err := n.ctr("image", "tag", "ekco.test/kept:1", image); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	await.Until(t, patience, "the scheduler runs as before", func() (bool, string) {
		running := n.static(t)
		return running["kube-scheduler"] != "", fmt.Sprint(running)
	})
	if output, err := n.rotate().CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	n.judge(t)
	n.serves(t)
}
