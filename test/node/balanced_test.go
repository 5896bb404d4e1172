package nodetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/durable"
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
	for _, image := range []struct{ name, why string }{{"ekco.test/none:1", "ekco.test/none:1"}, {refusingHAProxy, "is not -HUP PROCESS"}} {
		t.Run("image "+image.name+" does not pass the check", func(t *testing.T) {
			if image.name == refusingHAProxy {
				w.node.Import(t, built(t, refusingHAProxyImage))
			}
			w.shall(t, image.name, "90s")
			w.awaitRead(t, "EKCO says why", func(history string) bool {
				return strings.Contains(history, "check real-1 failed") && strings.Contains(history, image.why)
			}, "history", "--component", "loadbalancer", "--limit", "30")
			if now, seen := w.haproxy(t); now != first {
				t.Errorf("HAProxy was restarted: %s", seen)
			}
			w.node.WaitReady(t)
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
	restarted := systemd.Restarted()
	dying := startForwarder(t, w.address)
	server := fmt.Sprintf("https://%s:%d", gateway, dying.port())
	command := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "ekco", "change-load-balancer", "--server="+server)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w.restarts(t, restarted, dying.close)
	w.restarts(t, restarted, func() {})
	t.Logf("the command ended: %v", command.Wait())
	w.node.WaitReady(t)
	w.awaitRead(t, "the change ends as partial", func(history string) bool {
		return strings.Contains(history, "partial") && strings.Contains(history, "former server was restored")
	}, "history", "--component", "kubeconfigs", "--limit", "30")
	for _, name := range []string{"kubelet.conf", "admin.conf"} {
		path := w.node.Disk("etc/kubernetes/" + name)
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), "server: https://localhost:6444") {
			t.Errorf("%s: %v:\n%s", name, err, content)
		}
		if _, err := os.Stat(path + durable.FormerSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a copy of %s is left: %v", name, err)
		}
	}
}

// takesBackAConfiguration cuts off the node once a new configuration is written. Only the task on the node can undo that.
func (w *balanced) takesBackAConfiguration(t *testing.T) {
	w.shall(t, haproxyImages[0], "20s")
	config := func() string {
		content, err := w.node.command("cat", "/etc/haproxy/haproxy.cfg").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, content)
		}
		return string(content)
	}
	former := config()
	fromPods := []string{"!", "-i", "lo"}
	w.drops(t, "-I", fromPods...) // EKCO does not see that HAProxy serves, and the kubelet works
	w.joins(t, "primary-4", w.forwarder)
	await.Until(t, await.HangTimeout, "the configuration is written", func() (bool, string) { return config() != former, former })
	w.drops(t, "-I")
	await.Until(t, await.HangTimeout, "the former configuration is restored", func() (bool, string) { return config() == former, config() })
	w.drops(t, "-D")
	w.drops(t, "-D", fromPods...)
	w.node.WaitReady(t)
	w.awaitRead(t, "EKCO says so", func(history string) bool {
		return strings.Contains(history, "from the API server at 127.0.0.1:6444") && strings.Contains(history, "were restored")
	}, "history", "--component", "loadbalancer", "--limit", "30")
	w.serves(t, haproxyImages[0], 2) // at the second try
	w.Kubectl(t, "delete", "node", "primary-4")
}

// takesBackABrokenHAProxy: the image passes the check before the change. The task on the node restores the files.
func (w *balanced) takesBackABrokenHAProxy(t *testing.T) {
	files := func() string {
		content, err := w.node.command("sh", "-c", "cat /etc/haproxy/haproxy.cfg /etc/kubernetes/manifests/haproxy.yaml && ls /etc/haproxy").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, content)
		}
		return string(content)
	}
	before := files()
	w.node.Import(t, built(t, brokenHAProxyImage))
	w.shall(t, brokenHAProxy, "10s") // it never works
	w.awaitRead(t, "the action stalls after its second try, with the reason", func(status string) bool {
		return strings.Contains(status, "stalled at write real-1: failed 2 times") && strings.Contains(status, "were restored")
	}, "status")
	w.node.WaitReady(t)
	if now := files(); now != before {
		t.Errorf("the files are\n%s\nwant\n%s", now, before)
	}
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
	for _, want := range []string{"change-load-balancer", "serve real-1 is done", "kubeconfig real-1 is done", "they are led to https://localhost:6444"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
}

// serves waits until HAProxy runs with that image and so many servers, and EKCO has proved it. It
// returns which container that is.
func (w *balanced) serves(t *testing.T, image string, servers int) (container string) {
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
		container, why = w.haproxy(t)
		if container == "" || !strings.Contains(why, image) {
			return false, why
		}
		status, err := w.read(t, "status", "--component", "loadbalancer")
		return err == nil && w.isInStep(status), status
	})
	t.Logf("%s with %d servers after %s", image, servers, time.Since(began).Round(100*time.Millisecond))
	return container
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

// haproxy returns the container that runs, empty for none, and what is seen.
func (w *balanced) haproxy(t *testing.T) (container, seen string) {
	t.Helper()
	pod, err := w.Client.CoreV1().Pods("kube-system").Get(t.Context(), "haproxy-real-1", metav1.GetOptions{})
	if err != nil {
		return "", err.Error()
	}
	for _, status := range pod.Status.ContainerStatuses {
		seen = fmt.Sprintf("%s, %+v", pod.Spec.Containers[0].Image, status)
		if status.State.Running != nil && pod.DeletionTimestamp == nil {
			container = status.ContainerID
		}
	}
	return container, seen
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
