package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fsmenvoy "github.com/replicatedhq/ekco/fsm/envoy"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

const contourNamespace = "projectcontour"

// envoyAllows is envoy_pods_not_ready_duration in these tests.
const envoyAllows = 4 * time.Second

// installEnvoy has Envoy on six nodes, and an EKCO that gives its pods some seconds. What
// it does in time it cannot owe to a look once in a while.
func installEnvoy(t *testing.T, keys map[string]string) (*cluster, *operator) {
	t.Helper()
	all := map[string]string{"restart_failed_envoy_pods": "true", "envoy_pods_not_ready_duration": envoyAllows.String(), "reconcile_interval": "24h"}
	for key, value := range keys {
		all[key] = value
	}
	c, o := install(t, all)
	c.kubectl("apply", "-f", "testdata/envoy.yaml")
	eventually(t, await.HangTimeout, "Envoy runs on six nodes", func() (bool, string) {
		pods := c.envoyPods()
		return len(pods) == 6, fmt.Sprint(len(pods))
	})
	return c, o
}

// envoyPods returns the pods that run, by their nodes.
func (c *cluster) envoyPods() map[string]corev1.Pod {
	c.t.Helper()
	list, err := c.client.CoreV1().Pods(contourNamespace).List(context.WithoutCancel(c.t.Context()), metav1.ListOptions{LabelSelector: "app=envoy"})
	if err != nil {
		c.t.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods[pod.Spec.NodeName] = pod
		}
	}
	return pods
}

// hang has the kubelet of a node say that its Envoy is not ready, since then by its own
// clock, and returns the pod. Ready stays as it is, or the simulated kubelet would make all
// of it ready again.
func (c *cluster) hang(node string, since time.Time) corev1.Pod {
	c.t.Helper()
	pod := c.envoyPods()[node]
	status := pod.Status
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = status.ContainerStatuses[i].Name == "shutdown-manager"
		status.ContainerStatuses[i].State.Running.StartedAt = metav1.NewTime(since)
	}
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.ContainersReady {
			status.Conditions[i].Status, status.Conditions[i].Reason = corev1.ConditionFalse, "ContainersNotReady"
			status.Conditions[i].LastTransitionTime = metav1.NewTime(since)
		}
	}
	c.patchStatus(pod, status)
	return pod
}

// recover has the kubelet say that all containers are ready.
func (c *cluster) recover(node string) {
	c.t.Helper()
	pod := c.envoyPods()[node]
	status := pod.Status
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = true
	}
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.ContainersReady {
			status.Conditions[i].Status, status.Conditions[i].Reason = corev1.ConditionTrue, ""
			status.Conditions[i].LastTransitionTime = metav1.Now()
		}
	}
	c.patchStatus(pod, status)
}

func (c *cluster) patchStatus(pod corev1.Pod, status corev1.PodStatus) {
	c.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"containerStatuses": status.ContainerStatuses, "conditions": status.Conditions,
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.client.CoreV1().Pods(contourNamespace).Patch(c.t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
}

// waitReplaced waits until another pod runs in the place of that one.
func (c *cluster) waitReplaced(pod corev1.Pod) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "another Envoy runs on "+pod.Spec.NodeName, func() (bool, string) {
		now, runs := c.envoyPods()[pod.Spec.NodeName]
		return runs && now.UID != pod.UID, now.Name
	})
}

// envoyThing is what EKCO calls the DaemonSet's Envoy on a node.
func envoyThing(node string) string { return node + "/envoy" }

// envoyState returns the state of Envoy on a node; "" while EKCO knows nothing of it.
func (o *operator) envoyState(node string) journal.State {
	o.t.Helper()
	for _, thing := range o.status().Things {
		if thing.Machine == fsmenvoy.Machine && thing.Name == envoyThing(node) {
			return thing.State
		}
	}
	return ""
}

func (o *operator) waitEnvoy(node string, want journal.State) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, fmt.Sprintf("Envoy on %s is %s", node, want), func() (bool, string) {
		state := o.envoyState(node)
		return state == want, string(state)
	})
}

// restart is what the journal says of one: since when Envoy was seen to hang, when the
// delete of its pod began, and when the restart ended.
type restart struct {
	node                 string
	seen, deletes, ended time.Time
}

// restarts returns the restarts that have ended, in the order of their deletes.
func (o *operator) restarts() (all []restart) {
	o.t.Helper()
	seen, open := map[string]time.Time{}, map[string]*restart{}
	for _, event := range o.events("--component", fsmenvoy.Machine) {
		switch event.Type {
		case journal.TypeThingObserved:
			seen[event.Subject.Name] = event.Time
		case journal.TypeStepStarted:
			open[event.Action] = &restart{node: event.Subject.Node, seen: seen[event.Subject.Name], deletes: event.Time}
		case journal.TypeActionEnded:
			if of := open[event.Action]; of != nil {
				of.ended = event.Time
				all = append(all, *of)
			}
		}
	}
	return all
}

// waitRestarts waits until so many restarts have ended, and returns them.
func (o *operator) waitRestarts(n int) (all []restart) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, fmt.Sprintf("%d restarts have ended", n), func() (bool, string) {
		all = o.restarts()
		return len(all) >= n, fmt.Sprintf("%+v", all)
	})
	return all
}

// checkDue fails the test if a delete began before it was due. It did not wait for a poll, because the next
// poll is a day away.
func checkDue(t *testing.T, of restart, due time.Time) {
	t.Helper()
	after := of.deletes.Sub(due)
	if after < 0 {
		t.Errorf("the Envoy on %s, due at %s, was deleted %s before that", of.node, due, -after)
	}
	t.Logf("the Envoy on %s was deleted %s after it was due", of.node, after)
}

func TestAnEnvoyPodThatStaysUnreadyIsReplacedUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c, o := installEnvoy(t, nil)
	o.startReady()
	began := time.Now()
	o.mustEkco("pause", "--reason", "worker-2 is to be ready again before it may be restarted")
	hung := c.hang("worker-1", began.Add(-time.Hour)) // by its own clock for an hour
	c.hang("worker-2", began)
	o.waitEnvoy("worker-2", fsmenvoy.Unready)
	c.recover("worker-2")
	o.waitEnvoy("worker-2", fsmenvoy.Ready)
	o.mustEkco("resume")
	others := c.envoyPods()

	c.waitReplaced(hung)
	o.waitEnvoy("worker-1", fsmenvoy.Ready)
	first := o.waitRestarts(1)[0]
	if first.node != "worker-1" || first.seen.Before(began) {
		t.Errorf("the journal tells of %+v, which began at %s", first, began)
	}
	checkDue(t, first, first.seen.Add(envoyAllows))
	for node, pod := range c.envoyPods() {
		if node != "worker-1" && pod.UID != others[node].UID {
			t.Errorf("the Envoy on %s was replaced, too", node)
		}
	}
	o.checkRecorded("worker-1")
	if got := o.outcomes("worker-1")[journal.ActionRestartEnvoy]; !slices.Equal(got, []journal.Outcome{journal.OutcomeDone}) {
		t.Errorf("restarts of Envoy on worker-1 ended %v", got)
	}
	if got := o.outcomes("worker-2")[journal.ActionRestartEnvoy]; len(got) != 0 {
		t.Errorf("restarts of Envoy on worker-2, which was ready again, ended %v", got)
	}
	if absent := o.status().Absent; slices.ContainsFunc(absent, func(s string) bool { return strings.Contains(s, "envoy") }) {
		t.Errorf("status lists as absent %q", absent)
	}
	for _, shows := range []struct{ what, part string }{
		{strings.Join(strings.Fields(o.mustEkco("status", "-o", "wide")), " "), "envoy worker-1/envoy Ready"},
		{o.mustEkco("history", "envoy/worker-1/envoy", "-o", "tree"), "delete-pod " + contourNamespace + "/" + hung.Name},
	} {
		if !strings.Contains(shows.what, shows.part) {
			t.Errorf("%q is not in\n%s", shows.part, shows.what)
		}
	}
}

func TestOfManyEnvoyPodsOneIsReplacedInTenSeconds(t *testing.T) {
	t.Parallel()
	c, o := installEnvoy(t, nil)
	o.startReady()
	var hung []corev1.Pod
	for _, node := range []string{"worker-1", "worker-2", "worker-3"} {
		hung = append(hung, c.hang(node, time.Now()))
	}
	for _, pod := range hung {
		c.waitReplaced(pod)
	}
	all := o.waitRestarts(3)
	checkDue(t, all[0], all[0].seen.Add(envoyAllows))
	for i := 1; i < len(all); i++ {
		checkDue(t, all[i], all[i-1].ended.Add(10*time.Second))
	}
	if len(all) != 3 {
		t.Errorf("%d restarts, want 3", len(all))
	}
}

func TestAnEnvoyThatNeverBecomesReadyIsNotReplacedForEver(t *testing.T) {
	t.Parallel()
	c, o := installEnvoy(t, nil)
	o.startReady()
	for range 2 {
		c.waitReplaced(c.hang("worker-1", time.Now()))
		o.waitEnvoy("worker-1", fsmenvoy.Ready)
	}
	third := c.hang("worker-1", time.Now())
	refusal := o.waitRefusal(journal.ActionRestartEnvoy, "Contested")
	if !strings.HasPrefix(refusal.Reason, "Envoy on worker-1 becomes unready again each time EKCO replaces its pod") {
		t.Errorf("the reason is %q", refusal.Reason)
	}
	if now := c.envoyPods()["worker-1"]; now.UID != third.UID {
		t.Error("it was replaced for the third time")
	}
	if status := o.mustEkco("status"); !strings.Contains(status, "until then blocked by Contested") {
		t.Errorf("the status does not say it:\n%s", status)
	}
}

func TestAnEnvoyPodOnALostNodeIsLeftToThatNode(t *testing.T) {
	t.Parallel()
	c, o := installEnvoy(t, map[string]string{"clear_after": "1h", "node_unreachable_toleration": "2h"})
	o.startReady()
	o.mustEkco("pause", "--reason", "the node is to be lost before its pod may be replaced")
	hung := c.hang("worker-1", time.Now().Add(-time.Hour))
	o.waitEnvoy("worker-1", fsmenvoy.Unready)
	c.node("lose", "worker-1")
	o.waitEnvoy("worker-1", fsmenvoy.NodeLost)
	o.mustEkco("resume")
	lost := time.Now()
	// Another one that hangs later is replaced: by then, the first would have been, too.
	other := c.hang("worker-2", time.Now())
	c.waitReplaced(other)
	if now, err := c.client.CoreV1().Pods(contourNamespace).Get(t.Context(), hung.Name, metav1.GetOptions{}); err != nil || now.UID != hung.UID || now.DeletionTimestamp != nil {
		t.Errorf("after %s: %v, the pod on the lost node is %+v", time.Since(lost), err, now.ObjectMeta)
	}
	if got := o.outcomes("worker-1")[journal.ActionRestartEnvoy]; len(got) != 0 {
		t.Errorf("restarts on the lost node ended %v", got)
	}
	c.node("return", "worker-1")
	o.waitEnvoy("worker-1", fsmenvoy.Ready)
}

func TestARestartOfEnvoyIsOnlyPlayedInADryRunAndNotWantedWhereItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	c, o := installEnvoy(t, nil)
	p := o.startReady("--dry-run")
	hung := c.hang("worker-1", time.Now())
	eventually(t, await.HangTimeout, "a restart was played through", func() (bool, string) {
		got := o.outcomes("worker-1")[journal.ActionRestartEnvoy]
		return slices.Equal(got, []journal.Outcome{journal.OutcomeDryRun}), fmt.Sprint(got)
	})
	p.Stop(await.HangTimeout)
	o.startReady("--restart_failed_envoy_pods=false")
	o.waitEnvoy("worker-1", fsmenvoy.Ready)
	if now := c.envoyPods()["worker-1"]; now.UID != hung.UID {
		t.Error("the pod was replaced")
	}
}
