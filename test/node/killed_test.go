package nodetest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/test/await"
)

// findsItsHostTaskAgain: EKCO is killed while a program of its own looks at the node. The next
// one takes what comes of that, and makes no second pod.
func findsItsHostTaskAgain(t *testing.T, w *world) {
	program := w.stopReport(t)
	began := w.onlyTask(t)
	o := w.operating(t)
	if err := syscall.Kill(o.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The program may look for 20 s only, so it goes on before the next EKCO runs.
	await.Until(t, await.HangTimeout, "EKCO has ended", func() (bool, string) { return !o.runs(), "" })
	if err := syscall.Kill(program, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.awaitRestart(t, o, "Error")
	action := began.Annotations[hosttask.AnnotationAction]
	isOver := func(history string) bool { return strings.Contains(history, "ended, done") }
	w.awaitRead(t, action+" is over", isOver, "history", "--action", action)
	if outcome, err := w.read(t, "history", "--action", action, "--type", "step.done", "-o", "json"); err != nil || !strings.Contains(outcome, `"kernel"`) {
		t.Errorf("%v: what the program found is not on record:\n%s", err, outcome)
	}
	if made := w.everMade(t, began.Name); len(made) != 1 || made[0] != string(began.UID) {
		t.Errorf("pods were made: %q; want %s alone", made, began.UID)
	}
	if tasks := w.tasks(t); len(tasks) > 0 {
		t.Errorf("%d pods are left", len(tasks))
	}
}

// stopReport has EKCO look at the real node, and stops the program that does so before it is
// through, which may take a few tries.
func (w *world) stopReport(t *testing.T) (pid int) {
	t.Helper()
	pod, over := w.operator(t), make(chan struct{}, 1)
	ask := func() {
		_ = w.kubectl("--namespace", "kurl", "exec", pod, "--", "ekco", "node-report", w.node.Name).Run() // it fails with EKCO
		over <- struct{}{}
	}
	go ask()
	await.Looking(t, time.Millisecond, await.HangTimeout, "the program is stopped", func() (bool, string) {
		select {
		case <-over: // it was too fast
			go ask()
		default:
		}
		for _, found := range w.onNode(t, func(command string) bool { return command == "/usr/bin/ekco host-task node-report" }) {
			pid = found
			return syscall.Kill(pid, syscall.SIGSTOP) == nil && isStopped(pid), "it has ended, or is not stopped yet"
		}
		return false, "it does not run"
	})
	t.Cleanup(func() { <-over }) // it ends with EKCO at the latest
	return pid
}

// isStopped reports whether a process is stopped. A signal is taken later than it is sent, and one that is
// about to end, or has ended and is a zombie, takes none.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T")
}

// takesItsHostTaskAlong: an installer scales EKCO to 0 while a kubelet still waits for the image of
// a host task, from somebody who does not answer. Nobody would be there to see it fail.
func takesItsHostTaskAlong(t *testing.T, w *world) {
	registry, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(gateway, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	w.configure(t, quickSettings(map[string]string{"host_task_image": registry.Addr().String() + "/none:1"}))
	w.Kubectl(t, "--namespace", "kurl", "delete", "pod", w.operator(t))
	report := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "ekco", "node-report", w.node.Name)
	if err := report.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = report.Wait() }() // it fails with EKCO
	await.Until(t, await.HangTimeout, "the pod is there, and does not run", func() (bool, string) {
		tasks := w.tasks(t)
		return len(tasks) == 1 && tasks[0].Status.Phase == corev1.PodPending && len(tasks[0].Status.ContainerStatuses) == 1, fmt.Sprintf("%+v", tasks)
	})
	w.scale(t, 0)
	w.awaitNoPod(t, "") // one that had failed would stay
}

// everMade are the UIDs of the pods of a name that the kubelet has told of.
func (w *world) everMade(t *testing.T, name string) []string {
	t.Helper()
	events, err := w.Client.CoreV1().Events("kurl").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	var uids []string
	for _, event := range events.Items {
		uids = append(uids, string(event.InvolvedObject.UID))
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// onNode are the processes in the node's pods with a command line that is wanted.
func (w *world) onNode(t *testing.T, wanted func(command string) bool) []int {
	t.Helper()
	groups := w.node.groups()[1:]
	return processes(t, func(command string, of []byte) bool {
		return wanted(command) && slices.ContainsFunc(groups, func(group string) bool { return bytes.Contains(of, []byte(group)) })
	})
}

// tasks are the pods of EKCO's host tasks.
func (w *world) tasks(t *testing.T) []corev1.Pod {
	t.Helper()
	pods, err := w.Client.CoreV1().Pods("kurl").List(t.Context(), metav1.ListOptions{LabelSelector: hosttask.LabelHostTask + "=true"})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func (w *world) onlyTask(t *testing.T) corev1.Pod {
	t.Helper()
	tasks := w.tasks(t)
	if len(tasks) != 1 {
		t.Fatalf("%d pods of host tasks, want 1", len(tasks))
	}
	return tasks[0]
}
