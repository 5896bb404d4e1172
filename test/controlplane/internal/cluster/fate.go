package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Add creates a node.
func Add(ctx context.Context, client kubernetes.Interface, node *corev1.Node) error {
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create node %s: %w", node.Name, err)
	}
	return nil
}

// Join creates a node with an unused address.
func Join(ctx context.Context, client kubernetes.Interface, name string, role Role) error {
	n, err := freeAddress(ctx, client)
	if err != nil {
		return err
	}
	return Add(ctx, client, newNode(name, role, address(n)))
}

// Lose removes a node's kubelet, and then does what the node lifecycle controller would do 50 s later: it sets the node
// to Ready=Unknown and its pods to Ready=False. The controllers do the rest, beginning with the taint.
func Lose(ctx context.Context, client kubernetes.Interface, name string) error {
	if err := label(ctx, client, name, "null"); err != nil {
		return err
	}
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, readyPatch("Unknown", "NodeStatusUnknown"), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("cannot set node %s to Ready=Unknown: %w", name, err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return fmt.Errorf("cannot list the pods of node %s: %w", name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.ContainsFunc(pod.Status.Conditions, isReady) {
			continue
		}
		_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, readyPatch("False", "NodeNotReady"), metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot set pod %s/%s to Ready=False: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// readyPatch sets the condition Ready of a node or a pod.
func readyPatch(status, reason string) []byte {
	const patch = `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"lastTransitionTime":%q}]}}`
	return fmt.Appendf(nil, patch, status, reason, time.Now().UTC().Format(time.RFC3339))
}

// Return restores a node's kubelet.
func Return(ctx context.Context, client kubernetes.Interface, name string) error {
	return label(ctx, client, name, `"`+kubeletUp+`"`)
}

// label sets the kubelet label to a JSON value; null removes the label.
func label(ctx context.Context, client kubernetes.Interface, name, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, kubeletLabel, value)
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("cannot set label %s of node %s: %w", kubeletLabel, name, err)
	}
	return nil
}

// Replace deletes a node and creates another one, with a kubelet and the same name, labels and addresses, like the
// reinstallation of a machine. The pods stay bound to the name.
func Replace(ctx context.Context, client kubernetes.Interface, name string) error {
	nodes := client.CoreV1().Nodes()
	old, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read node %s to replace it: %w", name, err)
	}
	err = nodes.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.UID))})
	if err != nil {
		return fmt.Errorf("cannot delete node %s (uid %s): %w", name, old.UID, err)
	}
	// The lease names the old node as its owner, so the garbage collector would later delete it although the new node
	// uses it.
	err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete the lease of node %s: %w", name, err)
	}
	return Add(ctx, client, successor(old))
}

// successor returns a new node with the properties that a reinstalled machine keeps.
func successor(old *corev1.Node) *corev1.Node {
	node := newNode(old.Name, Worker, "")
	maps.Copy(node.Labels, old.Labels)
	node.Labels[kubeletLabel] = kubeletUp
	node.Status.Addresses = old.Status.Addresses
	return node
}

// Await repeats check until it succeeds. After timeout it returns check's last error.
func Await(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last == nil {
				last = err
			}
			return fmt.Errorf("condition not met after %s: %w", timeout, last)
		case <-tick.C:
		}
	}
}
