package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PodReady reports whether a pod runs, is ready and is not being deleted. It also checks the condition Ready, because
// the phase of a pod on a lost node stays Running.
func PodReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && podCondition(pod, corev1.PodReady, corev1.ConditionTrue) != nil
}

func podCondition(pod *corev1.Pod, of corev1.PodConditionType, status corev1.ConditionStatus) *corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of && c.Status == status })
	if at < 0 {
		return nil
	}
	return &pod.Status.Conditions[at]
}

// PodProblem returns the reason why a pod is not ready, or "". The text has no counts and times, because they change
// often.
func PodProblem(pod *corev1.Pod) string {
	if PodReady(pod) {
		return ""
	}
	problem := cmp.Or(string(pod.Status.Phase), "Unknown")
	if pod.DeletionTimestamp != nil {
		problem = "Terminating"
	}
	if unscheduled := podCondition(pod, corev1.PodScheduled, corev1.ConditionFalse); unscheduled != nil {
		return fmt.Sprintf("%s: %s: %s", problem, unscheduled.Reason, unscheduled.Message)
	}
	var waiting []string
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if container.State.Waiting != nil {
			waiting = append(waiting, waitingFor(container))
		}
	}
	switch {
	case len(waiting) > 0:
		problem += ": " + strings.Join(waiting, ", ")
	case problem == string(corev1.PodRunning):
		problem += ", not ready"
	}
	if pod.Spec.NodeName != "" {
		problem += " on node " + pod.Spec.NodeName
	}
	return problem
}

func waitingFor(container corev1.ContainerStatus) string {
	text := fmt.Sprintf("container %s: %s", container.Name, container.State.Waiting.Reason)
	if last := container.LastTerminationState.Terminated; last != nil {
		text += fmt.Sprintf(" (last ended with exit code %d, %s)", last.ExitCode, last.Reason)
	}
	return text
}
