package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TryPod returns a pod as the API server would store it after admission. It stores nothing.
func (c *Client) TryPod(ctx context.Context, pod corev1.Pod) (corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	var stored corev1.Pod
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager}
	err := c.core.Post().Resource("pods").Namespace(pod.Namespace).VersionedParams(&options, c.params).Body(&pod).Do(ctx).Into(&stored)
	return stored, call{verb: "create", resource: "pods", name: fullName(pod.Namespace, pod.Name)}.fail(err)
}
