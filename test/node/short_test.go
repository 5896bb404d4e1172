package nodetest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
)

// purgesWithLittleCPU: with a quarter of what the manifest lets it have, the purge takes longer,
// and nobody takes EKCO for hung.
func purgesWithLittleCPU(t *testing.T, w *world) {
	o := w.operating(t)
	before, restarts := o.throttled(t), w.container(t).RestartCount
	pod := w.operator(t)
	o.setCPU(t, 50)
	defer o.setCPU(t, 200)                                                               // as the manifest has it
	await.Until(t, await.HangTimeout, "the command is answered", func() (bool, string) { // EKCO may take longer than a command waits
		output, err := w.kubectl("--namespace", "kurl", "exec", pod, "--", "ekco", "purge-node", "worker-4", "--yes").CombinedOutput()
		return err == nil, string(output)
	})
	w.awaitPurged(t, "worker-4")
	times := o.throttled(t) - before
	t.Logf("it was throttled %d times", times)
	if now := w.container(t).RestartCount; times == 0 || now != restarts {
		t.Errorf("throttled %d times, restarted %d times", times, now-restarts)
	}
	w.isWhole(t, "worker-4")
}

// isKilledForItsMemory: in the middle of a purge the kernel kills EKCO, since it may have less
// memory than it takes.
func isKilledForItsMemory(t *testing.T, w *world) {
	const node = "worker-1"
	release := w.beginPurge(t, node)
	pod, o := w.operator(t), w.operating(t)
	// Of all in the pod it shall be this process.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", o.pid), []byte("1000"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.squeeze(t)
	const more = `x=$(head -c 16000000 /dev/zero | tr '\0' x)`
	await.Until(t, await.HangTimeout, "the kernel has killed EKCO", func() (bool, string) {
		output, err := w.kubectl("--namespace", "kurl", "exec", pod, "--", "bash", "-c", more).CombinedOutput()
		return !o.runs(), fmt.Sprint(string(output), err)
	})
	w.awaitRestart(t, o, "OOMKilled")
	release()
	w.awaitPurged(t, node)
	w.isWhole(t, node)
}

// awaitStep waits until the history of a node tells something.
func (w *world) awaitStep(t testing.TB, node, text string) {
	t.Helper()
	tells := func(history string) bool { return strings.Contains(history, text) }
	w.awaitRead(t, "the history of "+node+" tells: "+text, tells, "history", "--node", node)
}

// container is what the kubelet says of EKCO's.
func (w *world) container(t testing.TB) corev1.ContainerStatus {
	t.Helper()
	pod, err := w.Client.CoreV1().Pods("kurl").Get(t.Context(), w.operator(t), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Status.ContainerStatuses[0]
}

// awaitRestart waits until the pod that had this process has another, and checks why.
func (w *world) awaitRestart(t *testing.T, o operating, why string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "EKCO runs again", func() (bool, string) {
		container := w.container(t)
		last := container.LastTerminationState.Terminated
		return !o.runs() && container.RestartCount > o.restarts && last != nil && last.Reason == why && last.ExitCode == 128+int32(syscall.SIGKILL), fmt.Sprintf("%+v", last)
	})
}

// isWhole checks that the purge of a node was one, and that the journal has all of it.
func (w *world) isWhole(t *testing.T, node string) {
	t.Helper()
	w.awaitStep(t, node, "ended, done")
	history, err := w.read(t, "history", "--node", node)
	if err != nil || strings.Count(history, "requested by") != 1 || strings.Count(history, "ended, done") != 1 {
		t.Errorf("%v: it is not one purge:\n%s", err, history)
	}
	if verified := w.mustEkco(t, "journal", "verify"); strings.Contains(verified, "damaged") {
		t.Error(verified)
	}
}
