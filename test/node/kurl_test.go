package nodetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/rig"
)

// kurlHAProxy is the image that the add-on's Manifest names.
const kurlHAProxy = "docker.io/library/haproxy:3.4.2-alpine3.24"

// kurlDir is the directory of kURL's installer on the node.
const kurlDir = "/var/log/kurl"

// kurlSite is a primary without EKCO, on which kURL's hooks run from the package.
type kurlSite struct {
	*balanced
	pod string // the UID of EKCO's
}

// TestKURLInstallsOnARealNode is about the add-on's package on a primary: containerd takes its images, and the hooks run
// them. kURL's EKCO 0.28.14 was there before.
func TestKURLInstallsOnARealNode(t *testing.T) {
	t.Parallel()
	w := &world{Cluster: StartCluster(t, "--primaries", "1", "--workers", "0")}
	// Simulated primaries run no real pod.
	w.Kubectl(t, "taint", "node", "primary-1", "simulated=only:NoSchedule")
	w.node = w.Start(t, "real-1", primary)
	w.node.WaitReady(t)
	k := &kurlSite{balanced: &balanced{w}}
	k.leadToAPIServer(t, "-I", w.node.network.address(), w.forwarder)
	k.unpack(t)
	w.play(
		t,
		// ctr runs ekco and HAProxy, and the kubelet takes over.
		scene{"the load balancer serves before and after its pod runs", func(t *testing.T, _ *world) { k.bootstraps(t) }},
		// The pod comes up with what the hooks applied.
		scene{"kURL's EKCO is replaced", func(t *testing.T, _ *world) { k.replaces(t) }},
		scene{"a second run changes nothing", func(t *testing.T, _ *world) { k.runsAgain(t) }},
		scene{"a changed field reaches a new pod", func(t *testing.T, _ *world) { k.changes(t) }},
		// ekco changes a certificate on the disk of a primary, which has a taint of its own.
		scene{"the API server's certificate gets the new address", func(t *testing.T, _ *world) { k.changesAddress(t) }},
		scene{"kURL's EKCO comes back", func(t *testing.T, _ *world) { k.goesBack(t) }},
	)
}

// unpack builds the package, and puts it and kURL's scripts on the node's disk. kURL loads the images.
func (k *kurlSite) unpack(t *testing.T) {
	t.Helper()
	haproxy := filepath.Join(t.TempDir(), "haproxy.tar")
	if err := buildHAProxy(t.Context(), haproxy, kurlHAProxy); err != nil {
		t.Fatal(err)
	}
	dir := k.node.Disk(kurlDir)
	for _, part := range []string{dir, filepath.Join(dir, "kustomize"), filepath.Join(dir, "state")} {
		if err := os.Mkdir(part, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := fmt.Sprintf("env VERSION=%s EKCO_IMAGE_ARCHIVE=%s HAPROXY_IMAGE_ARCHIVE=%s ../../deploy/kurl/build.sh %s",
		version.Get().Version, built(t, ekcoImage), haproxy, dir)
	for _, command := range []string{build, "cp ../kurladdon/kurl.sh ../kurladdon/installer.sh " + dir} {
		if _, err := rig.Run(context.Background(), command); err != nil {
			t.Fatal(err)
		}
	}
	k.onNode(t, `for image in `+kurlDir+`/addons/ekco/*/images/*.tar.gz; do gunzip -c "$image" | ctr -n k8s.io images import -; done`)
}

// onNode runs a command of bash on the node, with what kURL has set.
func (k *kurlSite) onNode(t *testing.T, command string) string {
	t.Helper()
	output, err := k.node.command("env", "KUBECONFIG=/etc/kubernetes/admin.conf", "STATE="+kurlDir+"/state",
		"PRIVATE_ADDRESS="+k.node.network.address(), "bash", "-c", "cd "+kurlDir+" && { "+command+"; }").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v:\n%s", command, err, output)
	}
	return string(output)
}

func (k *kurlSite) awaitsLoadBalancer(t *testing.T, by string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "the API answers through "+by, func() (bool, string) {
		output, err := k.node.command("curl", "-skf", "https://localhost:6444/healthz").CombinedOutput()
		return err == nil, string(output)
	})
}

func (k *kurlSite) bootstraps(t *testing.T) {
	// An installer that was killed has left these.
	for _, name := range []string{"haproxy-manifest", "bootstrap-lb"} {
		k.onNode(t, "ctr -n k8s.io run --detach "+kurlHAProxy+" "+name+" /usr/sbin/haproxy -v >/dev/null")
	}
	k.onNode(t, "MASTER=1 ./installer.sh call ekco_bootstrap_internal_lb")
	k.awaitsLoadBalancer(t, "the temporary HAProxy")
	if running := k.onNode(t, "ctr -n k8s.io tasks list --quiet"); !strings.Contains(running, "bootstrap-lb") {
		t.Errorf("there is no container bootstrap-lb: %s", running)
	}
	k.onNode(t, "./installer.sh call ekco_cleanup_bootstrap_internal_lb")
	if left := k.onNode(t, "ctr -n k8s.io containers list --quiet"); strings.Contains(left, "bootstrap-lb") {
		t.Errorf("container bootstrap-lb is left: %s", left)
	}
	k.awaitsLoadBalancer(t, "HAProxy's pod")
}

func (k *kurlSite) replaces(t *testing.T) {
	for _, namespace := range []string{"kurl", "rook-ceph", "minio"} {
		k.Kubectl(t, "create", "namespace", namespace)
	}
	k.Kubectl(t, "apply", "-f", "../kurladdon/testdata/kurl-0.28.14.yaml")
	k.onNode(t, `mkdir -p /opt/ekco /etc/systemd/system && echo old | tee /opt/ekco/{startup,shutdown}.sh /etc/systemd/system/ekco-reboot.service /usr/local/bin/ekco-purge-node`)
	k.installs(t)
	k.runs(t)
	if help := k.onNode(t, "ekco-purge-node --help"); !strings.Contains(help, "ekco purge-node") {
		t.Errorf("ekco-purge-node is not the new one: %s", help)
	}
	// Those of the host's services stay until there are others.
	if kept := k.onNode(t, "cat /opt/ekco/{startup,shutdown}.sh /etc/systemd/system/ekco-reboot.service"); kept != strings.Repeat("old\n", 3) {
		t.Errorf("/opt/ekco and ekco-reboot.service have %q", kept)
	}
}

// installs runs the installer with the fields, and returns its output.
func (k *kurlSite) installs(t *testing.T, fields ...string) string {
	t.Helper()
	return k.onNode(t, "EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 "+strings.Join(fields, " ")+" ./installer.sh install")
}

// runs waits until the Deployment is rolled out, as an administrator does.
func (k *kurlSite) runs(t *testing.T) {
	t.Helper()
	k.Kubectl(t, "--namespace", "kurl", "rollout", "status", "deployment/ekc-operator", "--timeout", await.HangTimeout.String())
	k.pod = k.uid(t)
	await.Until(t, await.HangTimeout, "ekco status answers", func() (bool, string) {
		output, err := k.kubectl("--namespace", "kurl", "exec", "deployment/ekc-operator", "--", "ekco", "status").CombinedOutput()
		return err == nil && strings.Contains(string(output), "real-1"), string(output)
	})
}

func (k *kurlSite) uid(t *testing.T) string {
	t.Helper()
	return k.Kubectl(t, "--namespace", "kurl", "get", "pod", k.operator(t), "--output", "jsonpath={.metadata.uid}")
}

// files returns what of the load balancer must not change without a reason.
func (k *kurlSite) files(t *testing.T) string {
	t.Helper()
	return k.onNode(t, "stat --format='%n %y %a' /etc/kubernetes/manifests/haproxy.yaml")
}

func (k *kurlSite) runsAgain(t *testing.T) {
	files, began := k.files(t), time.Now()
	out := k.installs(t)
	t.Logf("nothing changes: the installer takes %s", time.Since(began).Round(time.Millisecond))
	if strings.Contains(out, "WARN") {
		t.Errorf("the hooks have something to say:\n%s", out)
	}
	if now := k.files(t); now != files {
		t.Errorf("%s was %s", now, files)
	}
	k.awaitsLoadBalancer(t, "HAProxy's pod")
	if uid := k.uid(t); uid != k.pod {
		t.Errorf("EKCO's pod is %s, and was %s", uid, k.pod)
	}
}

func (k *kurlSite) changes(t *testing.T) {
	before := k.pod
	k.installs(t, "EKCO_SHOULD_ENABLE_PURGE_NODES=1", "EKCO_NODE_UNREACHABLE_TOLERATION_DURATION=7m")
	k.runs(t)
	if k.pod == before {
		t.Error("EKCO's pod is the same")
	}
	config := k.Kubectl(t, "--namespace", "kurl", "exec", "deployment/ekc-operator", "--", "cat", "/etc/ekco/config.yaml")
	for _, want := range []string{"purge_dead_nodes: true\n", "node_unreachable_toleration: 7m\n", `storage_migration_auth_token: "` + strings.Repeat("0123456789abcdef", 4) + `"`} {
		if !strings.Contains(config, want) {
			t.Errorf("the pod's configuration has no %q:\n%s", want, config)
		}
	}
}

// changesAddress takes this node for another primary.
func (k *kurlSite) changesAddress(t *testing.T) {
	k.Kubectl(t, "taint", "node", k.node.Name, "own=taint:NoSchedule")
	settings := filepath.Join(k.node.dir, "settings", "kubeadm.yaml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, kubeadmSettings, k.node.network.address(), k.node.Name), 0o600); err != nil {
		t.Fatal(err)
	}
	k.node.kubeadm(t, "certs", "apiserver")
	hosts := func() string {
		certificate := k.node.leaf(t, "pki/apiserver.crt")
		return fmt.Sprint(certificate.DNSNames, certificate.IPAddresses)
	}
	// No program serves the certificate here.
	k.onNode(t, `echo "$PRIVATE_ADDRESS:6443 fd00::7" >state/sans`)
	const call = "REMOTE_PRIMARIES=real-1 KURL_STEP=1 KURL_SLEEP=1 ./installer.sh call ekco_handle_load_balancer_address_change_"
	if output := k.onNode(t, call+"pre_init old.example:6443 '[fd00::7]:6443'"); strings.Contains(output, "WARN") {
		t.Errorf("the hook warns: %s", output)
	}
	if has := hosts(); !strings.Contains(has, "fd00::7") {
		t.Errorf("the certificate is for %s", has)
	}
	k.onNode(t, call+"post_init '[fd00::7]:6443' new.example")
	if has := hosts(); strings.Contains(has, "fd00::7") || !strings.Contains(has, k.node.network.address()) {
		t.Errorf("the certificate is for %s", has)
	}
	k.Kubectl(t, "taint", "node", k.node.Name, "own-")
}

func (k *kurlSite) goesBack(t *testing.T) {
	k.Kubectl(t, "apply", "-f", "../kurladdon/testdata/kurl-0.28.14.yaml")
	await.Until(t, await.HangTimeout, "the old EKCO's pod is created", func() (bool, string) {
		pods := k.Kubectl(t, "--namespace", "kurl", "get", "pods", "-l", "app=ekc-operator", "-o", `jsonpath={.items[*].spec.containers[0].image}|{.items[*].spec.volumes[*].name}`)
		return strings.HasPrefix(pods, "replicated/ekco:v0.28.14|") && !strings.Contains(pods, "journal"), pods
	})
}
