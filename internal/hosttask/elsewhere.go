package hosttask

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Elsewhere lists the nodes other than node on which a task with this name may run. It includes the tasks of
// another EKCO process. [Tasks.Sweep] removes pods that cannot end, so they do not stay in the list.
func (t *Tasks) Elsewhere(ctx context.Context, name, node string) (nodes []string, err error) {
	pods, err := t.pods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !ended && isEKCOs(&pod.ObjectMeta) && pod.Labels[LabelTask] == name && pod.Spec.NodeName != node {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}
