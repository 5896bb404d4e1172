package nodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// TestHostTasks is about host tasks as a real kubelet runs them: what it says of pods that end in each way, and
// of those that cannot start. There is no EKCO, which would remove pods of which it does not know: the tests are
// in its place, with its permissions.
func TestHostTasks(t *testing.T) {
	t.Parallel()
	w := prepare(t, "--workers", "0")
	t.Run("side by side", func(t *testing.T) {
		for _, scene := range []struct {
			name string
			run  func(*testing.T, *taskWorld)
		}{
			{"one that works", works},
			{"one that an EKCO began that is no more", isFoundAgain},
			{"one whose pod is killed", isMadeAgain},
			{"one that ends with 3", exits},
			{"an image that cannot be had", lacksItsImage},
			{"one that takes too long", takesTooLong},
			{"a directory that is not there", lacksItsPath},
			{"a disk that is full", findsTheDiskFull},
			{"a pod of the same name", findsItsNameTaken},
		} {
			t.Run(scene.name, func(t *testing.T) {
				t.Parallel()
				scene.run(t, newTaskWorld(t, w))
			})
		}
	})
	t.Run("no permission to make pods", isForbidden(w))
	t.Run("the namespace's quota is used up", isOverQuota(w))
	t.Run("the kubelet is restarted under way", outlivesTheKubelet(w))
	t.Run("the kubelet dies under way", isLostWithTheKubelet(w))
}

// taskWorld is a task on the real node.
type taskWorld struct {
	*world
	tasks *hosttask.Tasks
	said  *lines
	task  hosttask.Task
	owner hosttask.Owner
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newTaskWorld(t *testing.T, w *world) *taskWorld {
	t.Helper()
	node, err := w.Client.CoreV1().Nodes().Get(t.Context(), w.node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tw := &taskWorld{world: w, said: &lines{}, owner: hosttask.Owner{Action: t.Name(), Step: "look"}, task: hosttask.Task{
		Name: "look", Node: node.Name, NodeUID: string(node.UID), Image: imageOf("task"), Start: journal.Duration(await.HangTimeout), Limit: journal.Duration(await.HangTimeout),
	}}
	tw.tasks = tw.anotherEKCO(t, "kurl/ekco")
	t.Cleanup(func() {
		tw.tasks.Leave(tw.task, tw.owner)
		if err := tw.tasks.Remove(context.WithoutCancel(t.Context()), tw.task, tw.owner); err != nil {
			t.Error(err)
		}
	})
	return tw
}

// anotherEKCO has tasks as an EKCO has that has just started.
func (w *taskWorld) anotherEKCO(t *testing.T, account string) *hosttask.Tasks {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	make := exec.CommandContext(t.Context(), binaries.controlplane, "kubeconfig", "--dir", w.dir, "--service-account", account, "--out", path)
	if output, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	config, err := kube.Connect(path, kube.Terms{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kube.NewObjects(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return hosttask.New(objects, client, "kurl", slog.New(slog.NewTextHandler(w.said, nil)))
}

// begin has the task's pod made, with a program that does that.
func (w *taskWorld) begin(t *testing.T, program ...string) {
	t.Helper()
	w.task.Args = program
	if err := w.tasks.Make(t.Context(), w.task, w.owner); err != nil {
		t.Fatal(err)
	}
}

// await waits until the task is that far, and returns its status.
func (w *taskWorld) await(t *testing.T, want hosttask.State, why string) (status hosttask.TaskStatus) {
	t.Helper()
	await.Until(t, await.HangTimeout, "the task is "+string(want), func() (bool, string) {
		var err error
		if status, err = w.tasks.Look(t.Context(), w.task, w.owner); err != nil {
			return false, err.Error()
		}
		return status.State == want && strings.Contains(status.Why, why), fmt.Sprintf("%s: %s", status.State, status.Why)
	})
	return status
}

// uid is that of the task's pod.
func (w *taskWorld) uid(t *testing.T) string {
	t.Helper()
	pod, err := w.Client.CoreV1().Pods("kurl").Get(t.Context(), w.task.PodName(w.owner), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(pod.UID)
}

// ends waits until the task has ended with a result.
func (w *taskWorld) ends(t *testing.T, want string) {
	t.Helper()
	if seen := w.await(t, hosttask.Ended, ""); string(seen.Result) != `"`+want+`"` {
		t.Errorf("the result is %s, not %q", seen.Result, want)
	}
}

// signal sends a signal to the task's program, and returns its processes.
func (w *taskWorld) signal(t *testing.T, sent syscall.Signal) (found []int) {
	t.Helper()
	pod, err := w.Client.CoreV1().Pods("kurl").Get(t.Context(), w.task.PodName(w.owner), metav1.GetOptions{})
	if err != nil || len(pod.Status.ContainerStatuses) != 1 {
		t.Fatalf("%v: %+v", err, pod.Status)
	}
	_, container, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	found = processes(t, func(_ string, groups []byte) bool { return bytes.Contains(groups, []byte(container)) })
	for _, pid := range found {
		_ = syscall.Kill(pid, sent) // it fails when it has ended
	}
	return found
}

// endsWhenTold has the task's program go on, until it has ended with a result.
func (w *taskWorld) endsWhenTold(t *testing.T, want string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "the program goes on", func() (bool, string) {
		found := w.signal(t, syscall.SIGUSR1)
		return len(found) == 0, fmt.Sprint(found)
	})
	w.ends(t, want)
}

func works(t *testing.T, w *taskWorld) {
	w.begin(t, "log", "first", "wait", "1h", "log", "second", "say", "well")
	await.Until(t, await.HangTimeout, "the first line is passed on before the end", func() (bool, string) {
		seen, err := w.tasks.Look(t.Context(), w.task, w.owner)
		return err == nil && seen.State == hosttask.Running && strings.Contains(w.said.String(), "host task says: first"), fmt.Sprint(seen, err, w.said)
	})
	w.endsWhenTold(t, "well")
	if said := w.said.String(); strings.Count(said, "says: first") != 1 || strings.Count(said, "says: second") != 1 {
		t.Errorf("passed on:\n%s", said)
	}
}

func isFoundAgain(t *testing.T, w *taskWorld) {
	w.begin(t, "wait", "1h", "say", "well")
	w.await(t, hosttask.Running, "")
	uid := w.uid(t)
	w.tasks = w.anotherEKCO(t, "kurl/ekco")
	w.begin(t, w.task.Args...)
	w.endsWhenTold(t, "well")
	if now := w.uid(t); now != uid {
		t.Errorf("a second pod was made: %s after %s", now, uid)
	}
}

func isMadeAgain(t *testing.T, w *taskWorld) {
	w.begin(t, "wait", "1h", "say", "well")
	w.await(t, hosttask.Running, "")
	uid := w.uid(t)
	w.signal(t, syscall.SIGSTOP) // or it might have ended before that is seen
	w.Kubectl(t, "--namespace", "kurl", "delete", "pod", w.task.PodName(w.owner), "--wait=false")
	w.await(t, hosttask.Lost, "its pod was deleted")
	w.begin(t, "say", "well")
	if now := w.uid(t); now == uid {
		t.Error("the pod that somebody deleted was taken for the new one")
	}
	w.ends(t, "well")
}

func exits(t *testing.T, w *taskWorld) {
	w.begin(t, "exit", "3")
	w.await(t, hosttask.Lost, "its pod failed: its program ended with 3")
}

func lacksItsImage(t *testing.T, w *taskWorld) {
	w.task.Image = "ekco.test/none:1"
	w.begin(t, "say", "never")
	w.await(t, hosttask.Lost, "its pod cannot start on node real-1: ")
}

func takesTooLong(t *testing.T, w *taskWorld) {
	w.task.Start, w.task.Limit = journal.Duration(3*time.Second), journal.Duration(time.Second)
	w.begin(t, "wait", "1h", "say", "never")
	w.await(t, hosttask.Lost, "its pod failed: DeadlineExceeded")
}

func lacksItsPath(t *testing.T, w *taskWorld) {
	w.task.Start = journal.Duration(4 * time.Second)
	w.task.Paths = []hosttask.Path{{Host: "/nowhere", At: "/host", Type: string(corev1.HostPathDirectory)}}
	w.begin(t, "say", "never")
	w.await(t, hosttask.Lost, "its pod has not started on node real-1 within 4s")
}

func findsTheDiskFull(t *testing.T, w *taskWorld) {
	const small = "mkdir -p /var/small && mount -t tmpfs -o size=64k small /var/small"
	if output, err := w.node.command("bash", "-c", small).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	w.task.Paths = []hosttask.Path{{Host: "/var/small", At: "/host", Type: string(corev1.HostPathDirectory), Write: true}}
	w.begin(t, "write", "/host/much", "say", "never")
	w.await(t, hosttask.Lost, "no space left on device")
}

func findsItsNameTaken(t *testing.T, w *taskWorld) {
	w.Kubectl(t, "--namespace", "kurl", "run", w.task.PodName(w.owner), "--image", imageOf("pause"))
	defer w.Kubectl(t, "--namespace", "kurl", "delete", "pod", w.task.PodName(w.owner), "--now", "--wait=false")
	var foreign *hosttask.ForeignError
	if err := w.tasks.Make(t.Context(), w.task, w.owner); !errors.As(err, &foreign) {
		t.Fatalf("the answer is %v", err)
	}
	if err := w.tasks.Remove(t.Context(), w.task, w.owner); err != nil {
		t.Fatal(err)
	}
	w.uid(t) // it is still there
}

func isForbidden(w *world) func(*testing.T) {
	return func(t *testing.T) {
		tw := newTaskWorld(t, w)
		w.Kubectl(t, "--namespace", "kurl", "create", "serviceaccount", "looker")
		w.Kubectl(t, "--namespace", "kurl", "create", "rolebinding", "looker", "--clusterrole=view", "--serviceaccount=kurl:looker")
		w.Kubectl(t, "create", "clusterrole", "looker", "--verb=get,list", "--resource=nodes")
		w.Kubectl(t, "create", "clusterrolebinding", "looker", "--clusterrole=looker", "--serviceaccount=kurl:looker")
		tasks := tw.anotherEKCO(t, "kurl/looker")
		await.Until(t, await.HangTimeout, "what is lacking is said", func() (bool, string) {
			err := tasks.Make(t.Context(), tw.task, tw.owner)
			return err != nil && strings.Contains(err.Error(), "lacks the permission to create pods"), fmt.Sprint(err)
		})
	}
}

// isOverQuota: it is made once the quota allows it.
func isOverQuota(w *world) func(*testing.T) {
	return func(t *testing.T) {
		tw := newTaskWorld(t, w)
		tw.task.Args = []string{"say", "well"}
		w.Kubectl(t, "--namespace", "kurl", "create", "quota", "none", "--hard=pods=0")
		await.Until(t, await.HangTimeout, "the quota refuses the pod", func() (bool, string) {
			err := tw.tasks.Make(t.Context(), tw.task, tw.owner)
			if err == nil { // the quota's controller has not counted yet
				return false, fmt.Sprint(tw.tasks.Remove(t.Context(), tw.task, tw.owner))
			}
			return strings.Contains(err.Error(), "the quota of namespace kurl does not allow the pod; raise it"), err.Error()
		})
		w.Kubectl(t, "--namespace", "kurl", "delete", "quota", "none")
		await.Until(t, await.HangTimeout, "the pod is made", func() (bool, string) {
			err := tw.tasks.Make(t.Context(), tw.task, tw.owner)
			return err == nil, fmt.Sprint(err)
		})
		tw.ends(t, "well")
	}
}

// outlivesTheKubelet: programs run on while their kubelet is away.
func outlivesTheKubelet(w *world) func(*testing.T) {
	return func(t *testing.T) {
		tw := newTaskWorld(t, w)
		tw.begin(t, "wait", "1h", "log", "on", "say", "well")
		tw.await(t, hosttask.Running, "")
		uid := tw.uid(t)
		w.node.kubelet.Kill()
		w.node.startKubelet(t)
		tw.endsWhenTold(t, "well")
		if now := tw.uid(t); now != uid {
			t.Errorf("a second pod was made: %s after %s", now, uid)
		}
	}
}

// isLostWithTheKubelet: what is given up since its node does not answer is removed, and the
// program ends when the node is back.
func isLostWithTheKubelet(w *world) func(*testing.T) {
	return func(t *testing.T) {
		tw := newTaskWorld(t, w)
		tw.begin(t, "wait", "1h", "say", "never")
		tw.await(t, hosttask.Running, "")
		w.node.kubelet.Kill()
		w.lose(t, w.node.Name)
		tw.await(t, hosttask.Lost, "node real-1 does not answer, while the task ran there")
		if err := tw.tasks.Remove(t.Context(), tw.task, tw.owner); err != nil {
			t.Fatal(err)
		}
		if gone, err := tw.tasks.Gone(t.Context(), tw.task, tw.owner); err != nil || !gone {
			t.Errorf("gone: %t, %v", gone, err)
		}
		var away *hosttask.NodeError
		if err := tw.tasks.Make(t.Context(), tw.task, tw.owner); !errors.As(err, &away) || away.Gone {
			t.Errorf("a pod for a node that is away: %v", err)
		}
		w.node.startKubelet(t)
		w.node.WaitReady(t)
		await.Until(t, await.HangTimeout, "the program has ended on the node", func() (bool, string) {
			output, err := w.node.command("ps", "-e", "-o", "args").CombinedOutput()
			return err == nil && !strings.Contains(string(output), "wait 1h"), string(output)
		})
		tw.begin(t, "say", "well")
		tw.ends(t, "well")
	}
}
