package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestNodesCanBeLostReturnedReplacedAndAdded(t *testing.T) {
	p := up(t, "--pods", "6", "--exec-handler", handler(t))
	steps := []struct {
		name string
		run  func(*testing.T, program)
	}{
		{"nodes look like those of a kURL cluster", nodesHaveRolesAndAddresses},
		{"exec runs the handler with the command and the container's names", execRuns},
		{"exec passes exit codes on", execExitCodes},
		{"exec passes every byte on, and does not wait for input", execStreams},
		{"kubectl exec works, and logs are refused", execKubectl},
		{"exec ends its processes when the client goes away", execClientGoes},
		{"exec is refused for what does not run", execRefused},
		{"exec is refused and cut on a lost node, and works when it is back", execLostNode},
		{"exec needs the right to", execForbidden},
		{"the exec server listens to the API server only", execServerTrusts},
		{"a lost node is tainted and its pods hang until they are forced or it returns", loseAndReturn},
		{"a replaced node has another UID, becomes ready and can be lost again", replace},
		{"an added node has the role asked for and an address of its own", add},
		{"a service account's kubeconfig has that account's rights only", serviceAccount},
		{"scale creates nodes with running pods", scaleUp},
		{"exec works on replaced, added and scaled nodes", execOnOtherNodes},
		{"kubectl is the real one, with its exit codes", kubectl},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) { step.run(t, p) })
	}
}

func nodesHaveRolesAndAddresses(t *testing.T, p program) {
	addresses := map[string]string{}
	for name, primary := range map[string]bool{"primary-1": true, "primary-3": true, "worker-1": false, "worker-3": false} {
		node := getNode(t, p.client, name)
		for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
			if _, has := node.Labels[label]; has != primary {
				t.Errorf("%s has label %s: %t, want %t", name, label, has, primary)
			}
		}
		ip := address(node, corev1.NodeInternalIP)
		if other, used := addresses[ip]; used || ip == "" {
			t.Errorf("%s has internal address %q, which %s has too", name, ip, other)
		}
		addresses[ip] = name
		if host := address(node, corev1.NodeHostName); host != name || node.Labels[corev1.LabelHostname] != name {
			t.Errorf("%s has host name %q and label %q", name, host, node.Labels[corev1.LabelHostname])
		}
	}
}

func loseAndReturn(t *testing.T, p program) {
	const loyal = "loyal"
	createPod(t, p.client, loyal, "worker-1")
	run(t, "node", "lose", "worker-1", "--dir", p.dir)
	noticed := eventually(t, func() error { return unreachable(t, p.client, "worker-1") })
	t.Logf("taint after %s", noticed)

	var stuck []string
	evicted := eventually(t, func() error {
		pods, err := p.client.CoreV1().Pods("demo").List(t.Context(), metav1.ListOptions{LabelSelector: "app=demo", FieldSelector: "spec.nodeName=worker-1"})
		if err != nil {
			return err
		}
		if stuck = terminating(t, p.client, "worker-1"); len(stuck) < 2 || len(stuck) < len(pods.Items) {
			return fmt.Errorf("%d of %d pods are terminating on worker-1", len(stuck), len(pods.Items))
		}
		return nil
	})
	t.Logf("pods terminating %s after that", evicted)
	eventually(t, func() error {
		run(t, "node", "lose", "worker-1", "--dir", p.dir) // a kubelet that has not ended yet may have set the pod to ready again
		return podReady(t, p.client, loyal, corev1.ConditionFalse)
	})

	run(t, "kubectl", "--kubeconfig", filepath.Join(p.dir, "kubeconfig"),
		"delete", "pod", "-n", "demo", stuck[0], "--force", "--grace-period=0")
	eventually(t, func() error { return gone(t, p.client, stuck[0]) })
	if left := terminating(t, p.client, "worker-1"); len(left) != len(stuck)-1 {
		t.Errorf("after forcing one of the pods %v, %v are left: want the others to hang", stuck, left)
	}

	run(t, "node", "return", "worker-1", "--dir", p.dir, "--wait", patience.String())
	freed := eventually(t, func() error {
		if left := terminating(t, p.client, "worker-1"); len(left) > 0 {
			return fmt.Errorf("%v are still terminating", left)
		}
		return nil
	})
	ready := eventually(t, func() error { return podReady(t, p.client, loyal, corev1.ConditionTrue) })
	t.Logf("after the return, pods gone in %s, the rest ready in %s more", freed, ready)
}

func replace(t *testing.T, p program) {
	before := getNode(t, p.client, "worker-2")
	run(t, "node", "replace", "worker-2", "--dir", p.dir, "--wait", patience.String())
	after := getNode(t, p.client, "worker-2")
	if after.UID == before.UID {
		t.Errorf("worker-2 still has UID %s", after.UID)
	}
	if was, is := address(before, corev1.NodeInternalIP), address(after, corev1.NodeInternalIP); is != was {
		t.Errorf("worker-2 has address %s after the replacement, before it was %s", is, was)
	}
	run(t, "node", "lose", "worker-2", "--dir", p.dir, "--wait", patience.String())
	if err := unreachable(t, p.client, "worker-2"); err != nil {
		t.Errorf("--wait returned early: %v", err)
	}
	run(t, "node", "return", "worker-2", "--dir", p.dir, "--wait", patience.String())
}

func add(t *testing.T, p program) {
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	run(t, "node", "add", "primary-4", "primary-5", "--role", "primary", "--kubeconfig", kubeconfig, "--wait", patience.String())
	four, five := getNode(t, p.client, "primary-4"), getNode(t, p.client, "primary-5")
	if _, has := four.Labels["node-role.kubernetes.io/control-plane"]; !has {
		t.Errorf("primary-4 has labels %v", four.Labels)
	}
	if a, b := address(four, corev1.NodeInternalIP), address(five, corev1.NodeInternalIP); a == b {
		t.Errorf("both new nodes have address %s", a)
	}
	if output, err := try(t.Context(), "node", "add", "x", "--role", "king", "--dir", p.dir); err == nil || !strings.Contains(output, "king") {
		t.Errorf("role king: error %v, output %q", err, output)
	}
	if output, err := try(t.Context(), "node", "lose", "no-such", "--dir", p.dir); err == nil || !strings.Contains(output, "no-such") {
		t.Errorf("losing an unknown node: error %v, output %q", err, output)
	}
}

func serviceAccount(t *testing.T, p program) {
	file := filepath.Join(p.dir, "account.kubeconfig")
	run(t, "kubeconfig", "--dir", p.dir, "--service-account", "demo/default", "--out", file)
	client := connect(t, file)
	_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing nodes as demo/default gave %v: want forbidden", err)
	}
	if !strings.Contains(fmt.Sprint(err), "system:serviceaccount:demo:default") {
		t.Errorf("the refusal does not name the account: %v", err)
	}
	if output, err := try(t.Context(), "kubeconfig", "--dir", p.dir, "--service-account", "demo/nobody"); err == nil || !strings.Contains(output, "demo/nobody") {
		t.Errorf("an unknown account: error %v, output %q", err, output)
	}
}

func scaleUp(t *testing.T, p program) {
	run(t, "scale", "--dir", p.dir, "--nodes", "5", "--pods-per-node", "3", "--pod-grace-seconds", "7", "--timeout", patience.String())
	pods, err := p.client.CoreV1().Pods("scale").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=scale-00005"})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 3 {
		t.Errorf("%d pods on scale-00005: want 3", len(pods.Items))
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || *pod.Spec.TerminationGracePeriodSeconds != 7 {
			t.Errorf("pod %s is %s with a grace period of %d s", pod.Name, pod.Status.Phase, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
}

func kubectl(t *testing.T, p program) {
	kubeconfig := "--kubeconfig=" + filepath.Join(p.dir, "kubeconfig")
	if output := run(t, "kubectl", kubeconfig, "get", "nodes", "-o", "name"); !strings.Contains(output, "node/primary-1") {
		t.Errorf("kubectl get nodes printed %q", output)
	}
	if output := run(t, "kubectl", kubeconfig, "version"); strings.Count(output, "v1.36.") < 2 {
		t.Errorf("kubectl version printed %q: want client and server to be 1.36", output)
	}
	output, err := try(t.Context(), "kubectl", kubeconfig, "get", "node", "no-such")
	if err == nil || !strings.Contains(output, "NotFound") {
		t.Errorf("kubectl get of an unknown node: error %v, output %q", err, output)
	}
}

// createPod creates a pod in namespace demo that stays on its node whatever
// happens to that, and waits until it is ready.
func createPod(t *testing.T, client kubernetes.Interface, name, node string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName:    node,
			Containers:  []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if _, err := client.CoreV1().Pods("demo").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return podReady(t, client, name, corev1.ConditionTrue) })
}

func getNode(t *testing.T, client kubernetes.Interface, name string) *corev1.Node {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func address(node *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range node.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return ""
}

func unreachable(t *testing.T, client kubernetes.Interface, name string) error {
	t.Helper()
	for _, taint := range getNode(t, client, name).Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute {
			return nil
		}
	}
	return fmt.Errorf("%s is not tainted", name)
}

func terminating(t *testing.T, client kubernetes.Interface, node string) []string {
	t.Helper()
	pods, err := client.CoreV1().Pods("demo").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

func podReady(t *testing.T, client kubernetes.Interface, name string, want corev1.ConditionStatus) error {
	t.Helper()
	pod, err := client.CoreV1().Pods("demo").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == want {
			return nil
		}
	}
	return fmt.Errorf("pod %s has conditions %v: want Ready=%s", name, pod.Status.Conditions, want)
}

func gone(t *testing.T, client kubernetes.Interface, pod string) error {
	t.Helper()
	_, err := client.CoreV1().Pods("demo").Get(t.Context(), pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errors.New("the pod is still there"), err)
}
