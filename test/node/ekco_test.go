package nodetest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
)

// TestEKCOInTheCluster is about the pod of the Deployment that kURL applies, from the image,
// on a real kubelet. Its scenes are in order: later ones have less nodes.
func TestEKCOInTheCluster(t *testing.T) {
	began := time.Now()
	w := install(t, map[string]string{"purge_dead_nodes": "true"}, "--workers", "9")
	w.operator(t)
	t.Logf("EKCO is ready %s after the first process was started", time.Since(began).Round(100*time.Millisecond))
	for _, scene := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"its pod has what the manifest says, and no more", isAsTheManifestSays},
		{"its Service answers on the node", answersOnTheNode},
		{"a lost node is cleared and purged", purgesALostNode},
		{"the kernel kills it in a purge for its memory", isKilledForItsMemory},
		{"the journal outlives the pod", keepsItsJournal},
		{"it is killed while it works on the host", findsItsHostTaskAgain},
		{"scaled to 0 in a purge, it ends, and goes on when it is back", isScaledInAPurge},
		{"purge-node without a terminal", purgesWithoutATerminal},
		{"purge-node whose client is gone", purgesWithoutAClient},
		{"purge-node and history on terminals", purgesOnATerminal},
		{"those who follow lose their clients", followsWithoutAReader},
		{"a purge with hardly any CPU", purgesWithLittleCPU},
		{"ekco-purge-node on the primary", purgesFromTheHost},
		{"node-report of the real node", reportsTheNode},
		{"its memory is within the limit", staysWithinItsMemory},
		{"its node dies in a purge and comes back", movesWithAnOpenPurge},
		{"the journal on a claim", keepsItsJournalOnAClaim},
		{"scaled to 0 while a host task does not run yet", takesItsHostTaskAlong},
		{"host tasks", hostTasks},
	} {
		t.Run(scene.name, func(t *testing.T) {
			began := time.Now()
			scene.run(t, w)
			t.Logf("took %s", time.Since(began).Round(100*time.Millisecond))
		})
	}
}

func answersOnTheNode(t *testing.T, w *world) {
	url := fmt.Sprintf("http://%s:31880/healthz", w.node.network.address())
	await.Until(t, patience, "the nodePort leads to EKCO", func() (bool, string) {
		client := http.Client{Timeout: 2 * time.Second}
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

func purgesALostNode(t *testing.T, w *world) {
	w.Kubectl(t, "--namespace", "default", "run", "app", "--image", "app:1", "--overrides", `{"spec": {"nodeName": "worker-1", "terminationGracePeriodSeconds": 1}}`)
	w.lose(t, "worker-1")
	w.awaitPurged(t, "worker-1")
	history := w.mustEkco(t, "history", "--node", "worker-1")
	for _, want := range []string{"clear-node", "purge-node", "delete-node is done"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
	if left := w.Kubectl(t, "--namespace", "default", "get", "pods", "--output", "name"); left != "" {
		t.Errorf("the pod of the lost node is still there: %s", left)
	}
}

func keepsItsJournal(t *testing.T, w *world) {
	pod := w.operator(t)
	w.Kubectl(t, "--namespace", "kurl", "delete", "pod", pod)
	if next := w.operator(t); next == pod {
		t.Fatalf("pod %s was not replaced", pod)
	}
	if history := w.mustEkco(t, "history", "--node", "worker-1"); !strings.Contains(history, "delete-node is done") {
		t.Errorf("the new pod does not know of the purge:\n%s", history)
	}
	if _, err := os.Stat(filepath.Join(w.node.Disk("var/lib/ekco"), "journal.db")); err != nil {
		t.Error(err)
	}
}

// isScaledInAPurge is what an installer does before it changes EKCO.
func isScaledInAPurge(t *testing.T, w *world) {
	// Somebody who could not be asked about a ready node has ten seconds to call it off.
	w.mustEkco(t, "purge-node", "worker-2", "--no-wait")
	began := time.Now()
	w.scale(t, 0)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the pod was gone after %s", took)
	}
	if _, err := w.Client.CoreV1().Nodes().Get(t.Context(), "worker-2", metav1.GetOptions{}); err != nil {
		t.Fatalf("the purge was over before: %v", err)
	}
	w.scale(t, 1)
	w.awaitPurged(t, "worker-2")
}

// scale scales EKCO, and waits until that is so.
func (w *world) scale(t testing.TB, replicas int) {
	t.Helper()
	w.Kubectl(t, "--namespace", "kurl", "scale", "deployment/ekc-operator", fmt.Sprint("--replicas=", replicas))
	if replicas > 0 {
		w.operator(t)
		return
	}
	await.Until(t, patience, "EKCO's pod is gone", func() (bool, string) {
		pods, err := w.Client.CoreV1().Pods("kurl").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, fmt.Sprint(err)
	})
}

func purgesWithoutATerminal(t *testing.T, w *world) {
	w.lose(t, "worker-3")
	output := w.mustEkco(t, "purge-node", "worker-3", "--force")
	if !strings.Contains(output, "node worker-3 is purged") {
		t.Errorf("it printed:\n%s", output)
	}
	w.awaitPurged(t, "worker-3")
}

// purgesWithoutAClient: the purge goes on, and the command in the pod ends with it.
func purgesWithoutAClient(t *testing.T, w *world) {
	command := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "ekco", "purge-node", "worker-4")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, patience, "the purge has begun", func() (bool, string) {
		history := w.mustEkco(t, "history", "--node", "worker-4")
		return strings.Contains(history, "wait-for-cancel begins"), history
	})
	_ = command.Process.Kill() // it fails when it has ended, which is seen below
	_ = command.Wait()
	if _, err := w.Client.CoreV1().Nodes().Get(t.Context(), "worker-4", metav1.GetOptions{}); err != nil {
		t.Fatalf("the purge was over before: %v", err)
	}
	w.awaitPurged(t, "worker-4")
	await.Until(t, patience, "the command has ended in the pod", func() (bool, string) {
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
	if code != 1 || !strings.Contains(output, "open "+unread+": permission denied; the report is root without capabilities") || !strings.Contains(output, "GiB of") {
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
