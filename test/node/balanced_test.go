package nodetest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/fsm/loadbalancer"
	"github.com/replicatedhq/ekco/internal/systemd/systemdtest"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/await"
)

// Names of one image of HAProxy.
var haproxyImages = []string{"ekco.test/haproxy:1", "ekco.test/haproxy:2"}

// balanced is a cluster whose only real node is a primary with HAProxy.
type balanced struct{ *world }

// TestTheLoadBalancerOfARealNode is about HAProxy as a static pod of a real kubelet, before a real API
// server. Simulated primaries, on which no program runs, come and go.
func TestTheLoadBalancerOfARealNode(t *testing.T) {
	t.Parallel()
	w := &balanced{installQuick(t, map[string]string{
		"enable_internal_load_balancer": "true", "internal_load_balancer_haproxy_image": haproxyImages[0],
		"host_task_image": "replicated/ekco:" + version.Get().Version,
	}, "--workers", "0")}
	w.node.Import(t, built(t, haproxyImage))
	w.leadToAPIServer(t, "-I", w.node.network.address(), w.forwarder)
	w.leadToAPIServer(t, "-I", w.internalIP(t, "primary-1"), w.forwarder) // no API server answers for primary-2
	// EKCO has to see the simulated primaries ready before they are lost: then it keeps them.
	w.operator(t)
	begun := w.begun(t, "primary-1")
	w.lose(t, "primary-1", "primary-2")
	w.awaitRead(t, "EKCO changes no other node", func(history string) bool {
		return strings.Contains(history, "LoadBalancerRollout") && !strings.Contains(history, "update-lb-real-1")
	}, "history", "--component", "loadbalancer", "--limit", "50")
	w.mustEkco(t, "cancel", begun) // until then, no other node is changed
	first := w.serves(t, haproxyImages[0], 2)

	watched := w.watch(t)
	for _, change := range []struct {
		what    func()
		servers int
	}{
		{func() { w.Kubectl(t, "delete", "node", "primary-1", "primary-2") }, 1},
		{func() { w.passesOverADeadAPIServer(t, "primary-3") }, 2},
		{func() { w.lose(t, "primary-3") }, 2},
		{func() { w.Kubectl(t, "delete", "node", "primary-3") }, 1},
	} {
		change.what()
		if now := w.serves(t, haproxyImages[0], change.servers); now != first {
			t.Errorf("HAProxy was restarted: %s after %s", now, first)
		}
		watched.sees(t)
	}
	await.Looking(t, readInterval, await.HangTimeout, "the ConfigMap says that all are in step", func() (bool, string) {
		says := w.Kubectl(t, "--namespace", "kurl", "get", "configmap", "update-internallb", "--ignore-not-found", "--output", "jsonpath={.data.update-internallb}")
		return strings.Contains(says, "real-1 true "+w.node.network.address()), says
	})

	t.Run("somebody removes the manifest", func(t *testing.T) {
		if err := os.Remove(w.node.Disk("etc/kubernetes/manifests/haproxy.yaml")); err != nil {
			t.Fatal(err)
		}
		w.Kubectl(t, "--namespace", "kurl", "delete", "configmap", "update-internallb") // as who does not want to wait
		await.Until(t, await.HangTimeout, "HAProxy is another one", func() (bool, string) {
			pod, why := w.haproxy(t)
			return pod != "" && pod != first, why
		})
		first = w.serves(t, haproxyImages[0], 1)
	})
	t.Run("a configuration that cuts off the node", func(t *testing.T) { w.takesBackAConfiguration(t) })
	first = w.serves(t, haproxyImages[0], 1)
	for _, image := range []struct{ name, why string }{{"ekco.test/none:1", `pull and unpack image "ekco.test/none:1"`}, {refusingHAProxy, "is not -HUP PROCESS"}} {
		t.Run("image "+image.name+" does not pass the check", func(t *testing.T) {
			if image.name == refusingHAProxy {
				w.node.Import(t, built(t, refusingHAProxyImage))
			}
			former := w.files(t)
			w.shall(t, image.name, "90s")
			w.isStopped(t, former, "restart of real-1 is stalled at check real-1", image.why)
			if now, seen := w.haproxy(t); now != first {
				t.Errorf("HAProxy was restarted: %s", seen)
			}
		})
	}
	t.Run("an image with which HAProxy does not work", func(t *testing.T) { w.takesBackABrokenHAProxy(t) })
	t.Run("another image", func(t *testing.T) {
		w.shall(t, haproxyImages[1], "90s")
		if now := w.serves(t, haproxyImages[1], 1); now == first {
			t.Error("HAProxy has another image, but was not restarted")
		}
	})
	systemd := w.systemd(t)
	t.Run("change-load-balancer, as installers run it", func(t *testing.T) { w.leadsItsKubelet(t, systemd) })
	t.Run("a server that dies is taken back", func(t *testing.T) { w.takesBackADeadServer(t, systemd) })
	w.noPodIsBad(t)
}

// begun waits until EKCO begins to change the load balancer of a simulated node, and returns the action. No
// program runs on such a node, so that the action stays open.
func (w *balanced) begun(t *testing.T, name string) (action string) {
	t.Helper()
	begins := regexp.MustCompile(`(update-lb-` + name + `-\S+): write ` + name + ` begins`)
	w.awaitRead(t, "EKCO changes the load balancer of "+name, func(history string) bool {
		found := begins.FindStringSubmatch(history)
		if found != nil {
			action = found[1]
		}
		return found != nil
	}, "history", "--component", "loadbalancer", "--limit", "50")
	return action
}

// shall sets this HAProxy image and trial in EKCO's configuration, and restarts EKCO.
func (w *balanced) shall(t *testing.T, image, trial string) {
	t.Helper()
	w.configure(t, quickSettings(map[string]string{
		"enable_internal_load_balancer": "true", "internal_load_balancer_haproxy_image": image, "internal_load_balancer_trial": trial,
		"host_task_image": "replicated/ekco:" + version.Get().Version,
	}))
	w.Kubectl(t, "--namespace", "kurl", "delete", "pod", w.operator(t))
}

// systemd returns a simulated systemd for the real node. The test restarts the kubelet for it.
func (w *balanced) systemd(t *testing.T) *systemdtest.Systemd {
	t.Helper()
	bus := filepath.Join(w.node.dir, "settings", "dbus")
	if err := os.Mkdir(bus, 0o755); err != nil {
		t.Fatal(err)
	}
	systemd := systemdtest.StartAt(t, filepath.Join(bus, "system_bus_socket"), "kubelet.service")
	if output, err := w.node.command("sh", "-c", "mkdir -p /run/dbus && mount --bind /node/dbus /run/dbus").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return systemd
}

// restarts waits until EKCO asks for a restart of the kubelet, calls before, and restarts it.
func (w *balanced) restarts(t *testing.T, restarted <-chan string, before func()) {
	t.Helper()
	select {
	case <-restarted:
	case <-time.After(await.HangTimeout):
		t.Fatal("the kubelet is not restarted")
	}
	before()
	w.node.kubelet.Kill()
	w.node.startKubelet(t)
}

// takesBackADeadServer points the kubelet to a server that then dies. Only the task on the node can undo that,
// since the node cannot be reached through the API.
func (w *balanced) takesBackADeadServer(t *testing.T, systemd *systemdtest.Systemd) {
	restarted, former := systemd.Restarted(), w.files(t)
	dying := startForwarder(t, w.address)
	server := fmt.Sprintf("https://%s:%d", gateway, dying.port())
	command := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "ekco", "change-load-balancer", "--server="+server)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w.restarts(t, restarted, dying.close)
	w.restarts(t, restarted, func() {})
	t.Logf("the command ended: %v", command.Wait())
	w.isStopped(t, former, "kubeconfigs/cluster is Partly", "not all kubelets use "+server, "the former server was restored")
}

// haproxyManifest is the path of HAProxy's manifest in the files of [balanced.files].
const haproxyManifest = "kubernetes/manifests/haproxy.yaml"

// file is a file or directory on the node.
type file struct{ Mode, Content string }

// files returns what EKCO may change on the node, by the path in /etc.
func (w *balanced) files(t *testing.T) map[string]file {
	t.Helper()
	packed, err := w.node.command("tar", "-C", "/etc", "-c", "haproxy", "kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]file{}, tar.NewReader(bytes.NewReader(packed))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = file{fmt.Sprint(header.FileInfo().Mode(), " ", header.Uid, ":", header.Gid), string(content)}
	}
}

// isRestarted reports whether a manifest has exactly one annotation more than the former one. EKCO adds it after it has
// restored a configuration, so that the kubelet restarts HAProxy.
func isRestarted(t *testing.T, former, now string) bool {
	t.Helper()
	var was, is corev1.Pod
	if err := errors.Join(yaml.UnmarshalStrict([]byte(former), &was), yaml.UnmarshalStrict([]byte(now), &is)); err != nil {
		t.Fatal(err)
	}
	const annotation = "ekco.kurl.sh/restarted"
	has := metav1.HasAnnotation(is.ObjectMeta, annotation)
	delete(is.Annotations, annotation)
	return has && reflect.DeepEqual(was, is)
}

// isStopped waits until the status says, with this verdict and these reasons, that a change stopped. Then the node must
// be ready, and have its former files.
func (w *balanced) isStopped(t *testing.T, former map[string]file, verdict string, reasons ...string) {
	t.Helper()
	says := func(status string) bool {
		lacks := func(reason string) bool { return !strings.Contains(status, reason) }
		return strings.HasPrefix(status, "NEEDS YOU: "+verdict) && !slices.ContainsFunc(reasons, lacks)
	}
	w.awaitRead(t, "the status says why the change stopped", says, "status")
	w.node.WaitReady(t)
	now := w.files(t)
	if manifest := now[haproxyManifest]; isRestarted(t, former[haproxyManifest].Content, manifest.Content) {
		manifest.Content = former[haproxyManifest].Content
		now[haproxyManifest] = manifest
	}
	if diff := cmp.Diff(former, now); diff != "" {
		t.Errorf("the node does not have its former files (-want +got):\n%s", diff)
	}
	status, code := w.ekco(t, "status", "--check")
	if t.Log(status); code != 2 || !says(status) {
		t.Errorf("ekco status --check ends with %d", code)
	}
}

// takesBackAConfiguration cuts off the node once a new configuration is written. Only the task on the node can undo that.
func (w *balanced) takesBackAConfiguration(t *testing.T) {
	w.shall(t, haproxyImages[0], "30s") // until then, a restarted HAProxy must answer again
	former := w.files(t)
	awaitConfig := func(what string, isFormer bool) {
		await.Until(t, await.HangTimeout, what, func() (bool, string) {
			now, err := w.node.command("cat", "/etc/haproxy/haproxy.cfg").Output()
			return err == nil && (string(now) == former["haproxy/haproxy.cfg"].Content) == isFormer, fmt.Sprint(string(now), err)
		})
	}
	fromPods := []string{"!", "-i", "lo"}
	w.drops(t, "-I", fromPods...) // EKCO does not see that HAProxy serves, and the kubelet works
	w.joins(t, "primary-4", w.forwarder)
	for range 2 { // then the action stalls
		awaitConfig("the configuration is written", false)
		w.drops(t, "-I")
		awaitConfig("the former configuration is restored", true)
		w.drops(t, "-D")
	}
	w.drops(t, "-D", fromPods...)
	w.isStopped(t, former, "update of real-1 is stalled at write real-1", loadbalancer.RuleRollout, "from the API server at 127.0.0.1:6444", "were restored")
	w.mustEkco(t, "retry", "real-1")
	w.serves(t, haproxyImages[0], 2)
	w.Kubectl(t, "delete", "node", "primary-4")
}

// takesBackABrokenHAProxy: the image passes the check before the change. The task on the node restores the files.
func (w *balanced) takesBackABrokenHAProxy(t *testing.T) {
	former := w.files(t)
	w.node.Import(t, built(t, brokenHAProxyImage))
	w.shall(t, brokenHAProxy, "10s") // it never works
	w.isStopped(t, former, "restart of real-1 is stalled at write real-1", "failed 2 times", "were restored")
	await.Until(t, await.HangTimeout, "HAProxy runs with its former image", func() (bool, string) {
		pod, seen := w.haproxy(t)
		return pod != "" && strings.Contains(seen, haproxyImages[0]), seen
	})
}

// leadsItsKubelet runs the command as kURL does. Its own kubelet is restarted, which breaks the command's
// stream.
func (w *balanced) leadsItsKubelet(t *testing.T, systemd *systemdtest.Systemd) {
	restarted := systemd.Restarted()
	const command = "ekco change-load-balancer --internal --server=https://localhost:6444 >/tmp/change-lb-log 2>&1"
	installer := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "bash", "-c", command)
	if err := installer.Start(); err != nil {
		t.Fatal(err)
	}
	w.restarts(t, restarted, func() {})
	t.Logf("the installer's command ended: %v", installer.Wait())
	var said string
	await.Looking(t, readInterval, await.HangTimeout, "the result is in the pod", func() (bool, string) {
		content, err := w.kubectl("--namespace", "kurl", "exec", "deploy/ekc-operator", "--", "cat", "/tmp/change-lb-log").CombinedOutput()
		said = string(content)
		return err == nil && strings.Contains(said, "Result:"), said
	})
	t.Log(said)
	if !strings.HasSuffix(said, "\nResult: success\n") || strings.Count(said, "Result:") != 1 {
		t.Errorf("it says:\n%s", said)
	}
	w.node.WaitReady(t)
	for _, name := range []string{"kubelet.conf", "admin.conf"} {
		content, err := os.ReadFile(w.node.Disk("etc/kubernetes/" + name))
		if err != nil || !strings.Contains(string(content), "server: https://localhost:6444") {
			t.Errorf("%s: %v:\n%s", name, err, content)
		}
	}
	history := w.mustEkco(t, "history", "--component", "kubeconfigs")
	for _, want := range []string{"change-load-balancer", "serve real-1 is done", "kubeconfig real-1 is done", "the requested address is https://localhost:6444"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
}

// serves waits until HAProxy runs with that image and so many servers, and EKCO has proved it. It
// returns which pod that is.
func (w *balanced) serves(t *testing.T, image string, servers int) (uid types.UID) {
	t.Helper()
	began := time.Now()
	await.Looking(t, readInterval, await.HangTimeout, fmt.Sprintf("HAProxy has %s and %d servers", image, servers), func() (bool, string) {
		config, err := w.node.command("cat", "/etc/haproxy/haproxy.cfg").Output()
		if err != nil {
			return false, err.Error()
		}
		if has := strings.Count(string(config), "\n    server "); has != servers {
			history, _ := w.read(t, "history", "--component", "loadbalancer", "--limit", "30") // it is only shown
			return false, fmt.Sprintf("it has %d servers: %s", has, history)
		}
		var why string
		uid, why = w.haproxy(t)
		if uid == "" || !strings.Contains(why, image) {
			return false, why
		}
		status, err := w.read(t, "status", "--component", "loadbalancer")
		return err == nil && w.isInStep(status), status
	})
	t.Logf("%s with %d servers after %s", image, servers, time.Since(began).Round(100*time.Millisecond))
	return uid
}

// isInStep reports whether a status says that the real node is.
func (w *balanced) isInStep(status string) bool {
	for line := range strings.Lines(status) {
		if strings.Contains(line, "real-1") && strings.Contains(line, "InStep") {
			return true
		}
	}
	return false
}

// haproxy returns the static pod whose container runs, empty for none, and what is seen. A changed manifest makes another
// pod. The container may change without EKCO: where the API servers answer too late, the liveness probe restarts it.
func (w *balanced) haproxy(t *testing.T) (uid types.UID, seen string) {
	t.Helper()
	pod, err := w.Client.CoreV1().Pods("kube-system").Get(t.Context(), "haproxy-real-1", metav1.GetOptions{})
	if err != nil {
		return "", err.Error()
	}
	for _, status := range pod.Status.ContainerStatuses {
		seen = fmt.Sprintf("%s, %+v", pod.Spec.Containers[0].Image, status)
		if status.State.Running != nil && pod.DeletionTimestamp == nil {
			uid = pod.UID
		}
	}
	return uid, seen
}

// noPodIsBad: installers refuse to go on while a pod in namespace kurl has failed.
func (w *balanced) noPodIsBad(t *testing.T) {
	t.Helper()
	pods, err := w.Client.CoreV1().Pods("kurl").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodFailed {
			t.Errorf("pod %s has failed", pod.Name)
		}
	}
}
