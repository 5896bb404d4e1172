package nodetest

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/await"
)

// TestACommandRenewsTheCertificatesOfAPrimary is about rotate-certs on a host that kubeadm has made a
// primary, with a real kubelet and static pods. The parts are in order: in each it is the kubelet that restarts a
// component, or does not, and the component that uses what is new.
func TestACommandRenewsTheCertificatesOfAPrimary(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, "--primaries", "1", "--workers", "0")
	n := c.startPrimary(t)
	n.installEKCO(t)
	for _, scene := range []struct {
		name string
		run  func(*testing.T, *Node)
	}{
		{"all that is due, and who needs it is restarted", renewsAll},
		{"nothing is due, and nothing is restarted", renewsNothing},
		{"it is killed again and again", renewsAlthoughKilled},
		{"the scheduler does not come back", func(t *testing.T, n *Node) { putsBack(t, n, "kube-scheduler", "scheduler.conf") }},
		{"the API server does not come back", func(t *testing.T, n *Node) { putsBack(t, n, "kube-apiserver", "pki/apiserver-kubelet-client.crt") }},
		{"the kubelet is away", waitsForTheKubelet},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(t, n) }) {
			return
		}
	}
}

// startPrimary starts a node and has kubeadm make it a primary. Its certificates have an hour left.
func (c *Cluster) startPrimary(tb testing.TB) *Node {
	tb.Helper()
	n := c.Start(tb, "real-1", primary)
	n.WaitReady(tb)
	n.becomePrimary(tb)
	return n
}

// installEKCO puts the program on the host.
func (n *Node) installEKCO(t testing.TB) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), "cp", built(t, ekcoProgram), n.Disk("var/lib/ekco/ekco")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// rotate returns the command. Of a flag that is given twice the last one counts.
func (n *Node) rotate(args ...string) *exec.Cmd {
	return n.command("/var/lib/ekco/ekco", append([]string{"rotate-certs", "--ttl", "720h", "--patience", await.HangTimeout.String()}, args...)...)
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
// an administrator and shows its new certificate, and the others take their leases.
func (n *Node) serves(t testing.TB) {
	t.Helper()
	await.Until(t, await.HangTimeout, "the API server shows what is in its file", func() (bool, string) {
		output, err := n.command("openssl", "s_client", "-connect", "127.0.0.1:6443", "-CAfile", "/etc/kubernetes/pki/ca.crt", "-verify_return_error", "-showcerts").Output()
		block, _ := pem.Decode(output)
		return err == nil && block != nil && bytes.Equal(block.Bytes, n.leaf(t, "pki/apiserver.crt").Raw), fmt.Sprint(err)
	})
	for _, component := range staticPods[2:] {
		// A lease that was left behind would have to end first.
		if output, err := n.ownKubectl("--namespace", "kube-system", "delete", "lease", component, "--ignore-not-found"); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		await.Looking(t, readInterval, await.HangTimeout, component+" takes its lease", func() (bool, string) {
			output, err := n.ownKubectl("--namespace", "kube-system", "get", "lease", component, "--output", "jsonpath={.spec.renewTime}")
			return err == nil && output != "", output
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

// renewsAlthoughKilled kills it when it has said this or that, and has it do the rest. How far it is when the
// kill arrives is for the machine to say.
func renewsAlthoughKilled(t *testing.T, n *Node) {
	n.age(t, time.Hour, renewable()...)
	isInterrupted, kills := false, 0
	for _, line := range []string{"Rotated ", "Restarting kube-apiserver ", "Back: kube-apiserver ", "Restarting kube-scheduler "} {
		if isInterrupted = n.rotateUntil(t, line); isInterrupted {
			kills++
		}
	}
	if kills == 0 {
		t.Error("it was never killed before it had ended")
	}
	output, err := n.rotate().CombinedOutput()
	t.Logf("after %d kills, the last one says:\n%s", kills, output)
	if err != nil || strings.Contains(string(output), "an earlier rotation that was interrupted") != isInterrupted {
		t.Errorf("interrupted: %t, %v", isInterrupted, err)
	}
	n.judge(t)
	n.serves(t)
}

// rotateUntil kills a rotation when it says a line that begins like that, and reports whether it was killed before its end.
func (n *Node) rotateUntil(t *testing.T, line string) (isInterrupted bool) {
	t.Helper()
	command := n.rotate()
	said, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	isDone, isKilled := false, false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		t.Log(lines.Text())
		isDone = isDone || strings.HasPrefix(lines.Text(), "Done on ")
		if !isKilled && strings.HasPrefix(lines.Text(), line) {
			n.killRotation()
			isKilled = true
		}
	}
	if err := command.Wait(); err != nil && !isKilled {
		t.Fatalf("it was not killed, and failed: %v", err)
	}
	return isKilled && !isDone
}

// killRotation kills the program itself: nsenter has started it and does not take it along.
func (n *Node) killRotation() {
	_, _ = n.command("pkill", "--signal", "KILL", "--full", "^[^ ]*/ekco (host-task )?rotate-certs").CombinedOutput() // it fails if it has ended
}

// putsBack: a component's image is another's, so that its new pod ends at once.
func putsBack(t *testing.T, n *Node, component, file string) {
	n.age(t, time.Hour, file, "admin.conf")
	old := n.leaf(t, file)
	n.misplaceImage(t, component)
	// How long it takes until the kubelet has started what ends at once is for the machine to say.
	for wait := 10 * time.Second; ; wait *= 2 {
		output, err := n.rotate("--patience", wait.String()).CombinedOutput()
		t.Logf("it says:\n%s", output)
		says := fmt.Sprintf("Error: %s has not come back with its new certificates within %s", component, wait)
		if err == nil || !strings.Contains(string(output), says) {
			t.Fatalf("it does not say %q: %v", says, err)
		}
		if strings.Contains(string(output), `; the last line of its log: "unknown command --`) {
			break
		}
		if wait > await.HangTimeout {
			t.Fatal("it does not say why")
		}
	}
	if !n.leaf(t, file).Equal(old) {
		t.Errorf("%s has not got back what it had", component)
	}
	if left := time.Until(n.leaf(t, "admin.conf").NotAfter); left < 364*24*time.Hour {
		t.Errorf("the administrator's is valid for %s", left)
	}
	n.replaceImage(t, component)
	await.Until(t, await.HangTimeout, component+" runs as before", func() (bool, string) {
		running := n.static(t)
		return running[component] != "", fmt.Sprint(running)
	})
	n.serves(t)
}

// misplaceImage has the image of a component be one that cannot be it.
func (n *Node) misplaceImage(t *testing.T, component string) {
	t.Helper()
	image := "ekco.test/" + component + ":" + kubernetesVersion
	n.tag(t, image, "ekco.test/kept:1")
	n.tag(t, wrongImageName, image)
}

// replaceImage has it be what it was.
func (n *Node) replaceImage(t *testing.T, component string) {
	t.Helper()
	n.tag(t, "ekco.test/kept:1", "ekco.test/"+component+":"+kubernetesVersion)
}

func (n *Node) tag(t *testing.T, image, as string) {
	t.Helper()
	if output, err := n.ctr("image", "tag", "--force", image, as); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// waitsForTheKubelet: nobody makes another pod of a manifest, and it is as it was. With the kubelet, all
// that was put back before is renewed.
func waitsForTheKubelet(t *testing.T, n *Node) {
	n.age(t, time.Hour, "scheduler.conf")
	path := n.Disk("etc/kubernetes/manifests/kube-scheduler.yaml")
	manifest := mustRead(t, path)
	n.kubelet.Kill()
	output, err := n.rotate("--patience", "1s").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "the kubelet has not restarted it") || mustRead(t, path) != manifest {
		t.Errorf("%v:\n%s", err, output)
	}
	n.startKubelet(t)
	n.WaitReady(t)
	output, err = n.rotate().CombinedOutput()
	t.Logf("with the kubelet it says:\n%s", output)
	if err != nil {
		t.Error(err)
	}
	n.judge(t)
	n.serves(t)
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
