package nodetest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/replicatedhq/ekco/test/await"
)

// scene is a subtest on a shared cluster; scenes run in order. The comment above each one says what only a
// real node shows.
type scene struct {
	name string
	run  func(*testing.T, *world)
}

func (w *world) play(t *testing.T, scenes ...scene) {
	t.Helper()
	for _, scene := range scenes {
		t.Run(scene.name, func(t *testing.T) { scene.run(t, w) })
	}
}

// TestEKCOInTheCluster is about the pod of the Deployment that kURL applies, from the image, and the commands
// that are run in it. Scenes remove nodes, so later ones have fewer.
func TestEKCOInTheCluster(t *testing.T) {
	t.Parallel()
	w := install(t, map[string]string{"purge_dead_nodes": "true"}, "--workers", "5")
	w.losesANode(t) // EKCO waits for it to return during the first scenes
	w.play(
		t,
		// API server, containerd and runc grant what the manifest says.
		scene{"its pod has what the manifest says, and no more", isAsTheManifestSays},
		// kube-proxy's rules lead to the pod.
		scene{"its Service answers on the node", answersOnTheNode},
		// Files of a real node, and those that a program without capabilities may not read.
		scene{"node-report of the real node", reportsTheNode},
		// The program in the image, with the identity and the permissions of its pod, does the whole of it.
		scene{"a lost node is cleared and purged", purgesALostNode},
		// containerd does not end the command in the pod when its client is gone.
		scene{"purge-node whose client is gone", purgesWithoutAClient},
		// Window size, Ctrl-C and hanging up go through kubelet and containerd.
		scene{"purge-node and history on terminals", purgesOnATerminal},
		// Nor is a command told that nobody reads what it prints.
		scene{"those who follow lose their clients", followsWithoutAReader},
		// The kernel lets it run only now and then, and the kubelet's probes wait.
		scene{"a purge with hardly any CPU", purgesWithLittleCPU},
		// kubectl and the kubeconfig of a primary.
		scene{"ekco-purge-node on the primary", purgesFromTheHost},
		// The kernel's count of all that ran in the pod.
		scene{"its memory is within the limit", staysWithinItsMemory},
	)
}

// TestEKCOEndsInTheMiddle is about EKCO's pod when it is killed, scaled, and changed.
func TestEKCOEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	w := installQuick(t, nil, "--workers", "2")
	w.play(
		t,
		// The kernel's OOM kill, and the restart by the kubelet.
		scene{"the kernel kills it in a purge for its memory", isKilledForItsMemory},
		// SIGTERM and the grace period by the kubelet, and the journal on the node's disk.
		scene{"scaled to 0 in a purge, it ends, and goes on when it is back", isScaledInAPurge},
		// The program of a host task lives on while EKCO's container is restarted.
		scene{"it is killed while it works on the host", findsItsHostTaskAgain},
		// The kubelet mounts a claim.
		scene{"the journal on a claim", keepsItsJournalOnAClaim},
		// The kubelet waits for an image.
		scene{"scaled to 0 while a host task does not run yet", takesItsHostTaskAlong},
	)
}

func answersOnTheNode(t *testing.T, w *world) {
	url := fmt.Sprintf("http://%s:31880/healthz", w.node.network.address())
	await.Until(t, await.HangTimeout, "the nodePort leads to EKCO", func() (bool, string) {
		client := http.Client{Timeout: await.HangTimeout}
		response, err := client.Get(url)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && response.StatusCode == http.StatusOK, fmt.Sprint(response.Status, " ", string(body))
	})
}

// isAsTheManifestSays: the API server admits its priority in namespace kurl, and the kubelet keeps
// from it what it need not have.
func isAsTheManifestSays(t *testing.T, w *world) {
	pod, err := w.Client.CoreV1().Pods("kurl").Get(t.Context(), w.operator(t), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const critical = 2_000_000_000 // is that of system-cluster-critical
	if diff := cmp.Diff([]any{new(int32(critical)), new(int64(60))}, []any{pod.Spec.Priority, pod.Spec.TerminationGracePeriodSeconds}); diff != "" {
		t.Errorf("its priority, and its time to end (-want +got):\n%s", diff)
	}
	const try = `grep CapEff /proc/1/status; (echo x >/usr/x) 2>&1; echo x >/tmp/x && cat /tmp/x`
	tried := w.Kubectl(t, "--namespace", "kurl", "exec", pod.Name, "--", "bash", "-c", try)
	for _, want := range []string{"CapEff:\t0000000000000000\n", "/usr/x: Read-only file system\n", "\nx\n"} {
		if !strings.Contains(tried, want) {
			t.Errorf("in the pod lacks %q:\n%s", want, tried)
		}
	}
}

// losesANode takes a node away that a pod runs on, and waits until EKCO is ready.
func (w *world) losesANode(t *testing.T) {
	t.Helper()
	w.Kubectl(t, "--namespace", "default", "run", "app", "--image", "app:1", "--overrides", `{"spec": {"nodeName": "worker-1", "terminationGracePeriodSeconds": 1}}`)
	w.lose(t, "worker-1")
	w.operator(t)
}

func purgesALostNode(t *testing.T, w *world) {
	w.awaitPurged(t, "worker-1")
	for _, want := range []string{"clear-node", "purge-node", "delete-node is done"} {
		w.awaitStep(t, "worker-1", want)
	}
	if left := w.Kubectl(t, "--namespace", "default", "get", "pods", "--output", "name"); left != "" {
		t.Errorf("the pod of the lost node is still there: %s", left)
	}
}

// isScaledInAPurge is what an installer does before it changes EKCO. The new pod goes on by the journal.
func isScaledInAPurge(t *testing.T, w *world) {
	const node = "worker-2"
	release := w.beginPurge(t, node)
	exitCode := w.watchEnd(t, w.operator(t))
	w.scale(t, 0)
	if code := exitCode(); code != 0 {
		t.Errorf("EKCO did not end by itself: exit %d", code)
	}
	w.scale(t, 1)
	release()
	w.awaitPurged(t, node)
	w.isWhole(t, node)
	if history, err := w.read(t, "history", "--node", node); err != nil || strings.Contains(history, "taken over") {
		t.Errorf("%v: the new pod does not have the journal:\n%s", err, history)
	}
}

// beginPurge begins the purge of a node that is ready, which is not over until release is called.
func (w *world) beginPurge(t *testing.T, node string) (release func()) {
	t.Helper()
	release = w.hold(t, node)
	w.mustEkco(t, "purge-node", node, "--yes", "--no-wait")
	w.awaitStep(t, node, "delete-node begins")
	return release
}

// watchEnd watches a pod. What it returns waits until its container has ended, and returns its exit code.
func (w *world) watchEnd(t *testing.T, pod string) (exitCode func() int32) {
	t.Helper()
	watching, err := w.Client.CoreV1().Pods("kurl").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + pod})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)
	return func() int32 {
		t.Helper()
		late := time.NewTimer(await.HangTimeout)
		defer late.Stop()
		for {
			select {
			case event := <-watching.ResultChan():
				seen, is := event.Object.(*corev1.Pod)
				if !is || event.Type == watch.Deleted {
					t.Fatalf("pod %s was not seen to end: %v", pod, event)
				}
				for _, container := range seen.Status.ContainerStatuses {
					if ended := container.State.Terminated; ended != nil {
						return ended.ExitCode
					}
				}
			case <-late.C:
				t.Fatalf("pod %s does not end", pod)
			}
		}
	}
}

// scale scales EKCO, and waits until that is so.
func (w *world) scale(t testing.TB, replicas int) {
	t.Helper()
	w.Kubectl(t, "--namespace", "kurl", "scale", "deployment/ekc-operator", fmt.Sprint("--replicas=", replicas))
	if replicas > 0 {
		w.operator(t)
		return
	}
	w.awaitNoPod(t, "app=ekc-operator")
}

// awaitNoPod waits until no pod in namespace kurl has these labels.
func (w *world) awaitNoPod(t testing.TB, labels string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "the pods are gone", func() (bool, string) {
		pods, err := w.Client.CoreV1().Pods("kurl").List(t.Context(), metav1.ListOptions{LabelSelector: labels})
		return err == nil && len(pods.Items) == 0, fmt.Sprint(pods, err)
	})
}

// purgesWithoutAClient: the purge goes on, and the command in the pod ends with it.
func purgesWithoutAClient(t *testing.T, w *world) {
	const node = "worker-2"
	release := w.hold(t, node)
	command := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "ekco", "purge-node", node, "--yes")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w.awaitStep(t, node, "delete-node begins")
	_ = command.Process.Kill() // it fails when it has ended, which is seen below
	_ = command.Wait()
	release()
	w.awaitPurged(t, node)
	await.Until(t, await.HangTimeout, "the command has ended in the pod", func() (bool, string) {
		programs := w.programs(t)
		return !strings.Contains(programs, "purge-node"), programs
	})
}

func purgesFromTheHost(t *testing.T, w *world) {
	w.lose(t, "worker-5")
	w.installHostCommand(t)
	w.operator(t)
	output, err := w.node.command("env", "--unset=KUBECONFIG", "ekco-purge-node", "worker-5").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
	}
	w.awaitPurged(t, "worker-5")
}

// installHostCommand installs ekco-purge-node on the primary.
func (w *world) installHostCommand(t testing.TB) {
	t.Helper()
	script, err := os.Open("../../deploy/host/ekco-purge-node")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	install := w.node.command("install", "-m", "0755", "/dev/stdin", "/usr/local/bin/ekco-purge-node")
	install.Stdin = script
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// reportsTheNode: also as far as it may not be read, and changes nothing there.
func reportsTheNode(t *testing.T, w *world) {
	before := w.hostFiles(t)
	output := w.mustEkco(t, "node-report", "real-1", "--follow")
	for _, want := range []string{"containerd://1.6", "expires", "GiB of", "report real-1 begins", "ended, done\n"} {
		if !strings.Contains(output, want) {
			t.Errorf("the report lacks %q:\n%s", want, output)
		}
	}
	if after := w.hostFiles(t); after != before {
		t.Errorf("on the node was\n%s, and is\n%s", before, after)
	}

	const unread = "/etc/kubernetes/pki/unread.crt"
	for _, change := range [][]string{{"touch", unread}, {"chmod", "0", unread}} {
		if output, err := w.node.command(change[0], change[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	defer func() { _ = w.node.command("rm", unread).Run() }() // later scenes do not care
	output, code := w.ekco(t, "node-report", "real-1")
	if code != 1 || !strings.Contains(output, "open "+unread+": permission denied; the report runs as root without capabilities") || !strings.Contains(output, "GiB of") {
		t.Errorf("with a file that root needs a capability for: exit %d\n%s", code, output)
	}
}

// hostFiles are what a report reads on the node, each with what would show a change.
func (w *world) hostFiles(t *testing.T) string {
	t.Helper()
	output, err := w.node.command("find", "/etc/kubernetes", "/var/lib/etcd", "-printf", "%p %m %U:%G %s %T@ %C@\n").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "/etc/kubernetes/pki/ca.crt ") {
		t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}
