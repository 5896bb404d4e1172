package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
)

// Pod reads a Pod. See [API].
func (c *Client) Pod(ctx context.Context, namespace, name string) (Pod, error) {
	var pod corev1.Pod
	if err := c.get(ctx, "pods", namespace, name, &pod); err != nil {
		return Pod{}, err
	}
	return PodOf(&pod), nil
}

// PodOf returns what EKCO knows of a Pod. Its DeletionTimestamp is zero while
// nobody has asked the pod to end.
func PodOf(pod *corev1.Pod) Pod {
	return Pod{
		PodRef: journal.PodRef{
			Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
			DeletionTimestamp: utc(pod.DeletionTimestamp),
		},
		Node:  pod.Spec.NodeName,
		Grace: graceOf(pod),
	}
}

func graceOf(pod *corev1.Pod) time.Duration {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// slimPod drops from a Pod everything that PodOf, its grace period and a watch
// do not need.
func slimPod(pod *corev1.Pod) {
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp:          pod.DeletionTimestamp,
		DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		Annotations:                keep(pod.Annotations, metav1.InitialEventsAnnotationKey),
	}
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	pod.Status = corev1.PodStatus{}
}
