package e2e

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/test/await"
)

// tasks are host tasks as EKCO's service account has them.
func (c *cluster) tasks() *hosttask.Tasks {
	c.t.Helper()
	config, err := kube.Connect(c.kubeconfigFor("kurl/ekco", nil), kube.Terms{})
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := kube.NewClient(config, kube.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	objects, err := kube.NewObjects(config, kube.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	return hosttask.New(objects, client, "kurl", slog.New(slog.DiscardHandler))
}

// taskOn is a task for a node.
func (c *cluster) taskOn(name string) (hosttask.Task, hosttask.Owner) {
	c.t.Helper()
	node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return hosttask.Task{
		Name: "look", Node: name, NodeUID: string(node.UID), Image: "replicated/ekco:v0.29.0", Args: []string{"version"},
		Paths: []hosttask.Path{{Host: "/etc/kubernetes", At: "/host/etc/kubernetes"}},
	}, hosttask.Owner{Action: "a-1", Step: "look " + name}
}

// waitTask waits until a task is that far.
func (c *cluster) waitTask(tasks *hosttask.Tasks, node string, want hosttask.State, why string) {
	c.t.Helper()
	task, owner := c.taskOn(node)
	eventually(c.t, await.HangTimeout, "the task on "+node+" is "+string(want), func() (bool, string) {
		seen, err := tasks.Look(c.t.Context(), task, owner)
		if err != nil {
			return false, err.Error()
		}
		return seen.State == want && strings.Contains(seen.Why, why), string(seen.State) + ": " + seen.Why
	})
}

// TestHostTasksUnderTheShippedPermissions: a real API server takes the pods, on nodes that
// are cordoned or carry foreign taints too, and gives them up although their node is away.
// The simulated kubelets give no logs, so what comes of a program is not shown here.
func TestHostTasksUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.applyShippedRBAC()
	c.kubectl("cordon", "worker-1")
	c.kubectl("taint", "nodes", "worker-2", "mine=only:NoSchedule", "mine=only:NoExecute")
	tasks := c.tasks()
	for _, name := range []string{"worker-1", "worker-2", "primary-1"} {
		task, owner := c.taskOn(name)
		noticed := tasks.Changed(task, owner)
		if err := tasks.Make(t.Context(), task, owner); err != nil {
			t.Fatal(err)
		}
		c.waitTask(tasks, name, hosttask.Running, "")
		eventually(t, await.HangTimeout, "EKCO notices that the pod has changed", func() (bool, string) {
			select {
			case <-noticed:
				return true, ""
			default:
				return false, "it may not watch, or does not"
			}
		})
		defer tasks.Leave(task, owner)
		if err := tasks.Make(t.Context(), task, owner); err != nil { // it finds it
			t.Error(err)
		}
	}
	pods, err := c.client.CoreV1().Pods("kurl").List(t.Context(), metav1.ListOptions{LabelSelector: "kurl.sh/task=look"})
	if err != nil || len(pods.Items) != 3 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	for _, pod := range pods.Items {
		if len(pod.Spec.Volumes) != 2 || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("pod %s has %d volumes", pod.Name, len(pod.Spec.Volumes))
		}
	}

	t.Run("its log is asked for by a permission that EKCO has", func(t *testing.T) {
		task, owner := c.taskOn("worker-1")
		pod := task.PodName(owner)
		c.kubectl("patch", "pod", pod, "-n", "kurl", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Succeeded"}}`)
		c.waitTask(tasks, "worker-1", hosttask.Running, "its outcome cannot be read")
	})

	t.Run("a node that is lost gives its pod up", func(t *testing.T) {
		c.node("lose", "worker-2")
		c.waitUnreachable("worker-2")
		c.waitTask(tasks, "worker-2", hosttask.Lost, "node worker-2 does not answer")
		task, owner := c.taskOn("worker-2")
		began := time.Now()
		if err := tasks.Remove(t.Context(), task, owner); err != nil {
			t.Fatal(err)
		}
		if gone, err := tasks.Gone(t.Context(), task, owner); err != nil || !gone {
			t.Errorf("gone: %t, %v", gone, err)
		}
		t.Logf("removed in %s", time.Since(began))
		var away *hosttask.NodeError
		if err := tasks.Make(t.Context(), task, owner); !errors.As(err, &away) || away.Gone {
			t.Errorf("a pod for a node that is away: %v", err)
		}
	})

	t.Run("a namespace with pod security says so", func(t *testing.T) {
		c.kubectl("label", "namespace", "kurl", "pod-security.kubernetes.io/enforce=baseline")
		defer c.kubectl("label", "namespace", "kurl", "pod-security.kubernetes.io/enforce-")
		task, owner := c.taskOn("worker-3")
		eventually(t, await.HangTimeout, "the pod security refuses a pod", func() (bool, string) {
			err := tasks.Make(t.Context(), task, owner)
			if err == nil { // it is not seen yet that the namespace has the label
				return false, fmt.Sprint(tasks.Remove(t.Context(), task, owner))
			}
			return strings.Contains(err.Error(), "the pod security of namespace kurl does not allow the pod"), err.Error()
		})
	})

	t.Run("a quota that is used up is named", func(t *testing.T) {
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kurl", Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		if _, err := c.client.CoreV1().ResourceQuotas("kurl").Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		task, owner := c.taskOn("worker-3")
		eventually(t, await.HangTimeout, "the quota refuses a pod", func() (bool, string) {
			err := tasks.Make(t.Context(), task, owner)
			if err == nil { // the quota's controller has not counted yet
				return false, fmt.Sprint(tasks.Remove(t.Context(), task, owner))
			}
			return strings.Contains(err.Error(), "the quota of namespace kurl does not allow the pod"), err.Error()
		})
	})
}
