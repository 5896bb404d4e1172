package hosttask

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Elsewhere lists the other nodes on which a task of that name may run. It includes the tasks of another
// EKCO, which this journal does not know. Pods that cannot end are swept, so they do not stay in the list.
func (t *Tasks) Elsewhere(ctx context.Context, name, node string) (nodes []string, err error) {
	pods, err := t.pods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !ended && ours(&pod.ObjectMeta) && pod.Labels[LabelTask] == name && pod.Spec.NodeName != node {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}
