package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
)

// Pod implements [API].
func (c *Client) Pod(ctx context.Context, namespace, name string) (Pod, error) {
	var pod corev1.Pod
	if err := c.get(ctx, "pods", namespace, name, &pod); err != nil {
		return Pod{}, err
	}
	return PodWithStatusOf(&pod), nil
}

// PodOf converts a Pod, without controller and status.
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

// PodWithStatusOf converts a Pod, with controller and status.
func PodWithStatusOf(pod *corev1.Pod) Pod {
	p := PodOf(pod)
	p.Status, p.Finalizers = statusOf(pod), DelayedBy(pod.ObjectMeta)
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.Controller = Controller{Kind: owner.Kind, Name: owner.Name}
	}
	return p
}

func statusOf(pod *corev1.Pod) PodStatus {
	status := PodStatus{Phase: string(pod.Status.Phase)}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.ContainersReady && c.Status == corev1.ConditionFalse && c.Reason == containersNotReady {
			status.NotReadySince = c.LastTransitionTime.UTC()
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		container := Container{Name: c.Name, Ready: c.Ready}
		if c.State.Running != nil {
			container.RunningSince = c.State.Running.StartedAt.UTC()
		}
		status.Containers = append(status.Containers, container)
	}
	return status
}

// containersNotReady is the kubelet's reason for a running pod that is not ready. An ended pod has another reason.
const containersNotReady = "ContainersNotReady"

func graceOf(pod *corev1.Pod) time.Duration {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// slimPod removes the fields that PodOf, the grace period and a watch do not need.
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

// slimPodWithStatus removes the fields that PodWithStatusOf and a watch do not need.
func slimPodWithStatus(pod *corev1.Pod) {
	owners, whole := pod.OwnerReferences, pod.Status
	slimPod(pod)
	pod.OwnerReferences = owners
	pod.Status.Phase = whole.Phase
	for _, c := range whole.Conditions {
		if c.Type == corev1.ContainersReady {
			pod.Status.Conditions = []corev1.PodCondition{c}
		}
	}
	for _, c := range whole.ContainerStatuses {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: c.Ready, State: corev1.ContainerState{Running: c.State.Running},
		})
	}
}
