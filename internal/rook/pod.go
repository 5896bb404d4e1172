package rook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// The values of label app of pods with the ceph program. Rook's operator has the program in all versions, but since
// 1.4 the program does not find its credentials there.
const (
	toolsApp    = "rook-ceph-tools"
	operatorApp = Operator
)

// appWithCeph returns the app whose pods can run ceph. An unknown version is probably a new version.
func appWithCeph(version Version) string {
	if version.Known && !version.AtLeast(1, 4, 0) {
		return operatorApp
	}
	return toolsApp
}

// ToolsPod implements [API]. It prefers the newest pod.
func (c *Client) ToolsPod(ctx context.Context, version Version) (Pod, error) {
	app := appWithCeph(version)
	list, err := kube.List[corev1.Pod](ctx, c.objects, podsRef(), "app", app)
	if err != nil {
		return Pod{}, err
	}
	usable := slices.DeleteFunc(list, func(p corev1.Pod) bool { return !kube.PodReady(&p) })
	if len(usable) == 0 {
		return Pod{}, fmt.Errorf("%w: none of %d pods with label app=%s in namespace %s is running and ready; "+
			"look at them with kubectl -n %[4]s describe pods -l app=%[3]s, or start one with kubectl -n %[4]s scale deployment %[3]s --replicas=1",
			ErrNoToolsPod, len(list), app, Namespace)
	}
	newest := slices.MaxFunc(usable, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return Pod{Name: newest.Name, Container: app}, nil
}

// ended reports whether the pod has ended and will not start again.
func ended(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// OSDPods implements [API].
func (c *Client) OSDPods(ctx context.Context, node string) ([]OSDPod, error) {
	list, err := kube.List[corev1.Pod](ctx, c.objects, podsRef(), OSDLabel, OSDApp)
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var found []OSDPod
	for _, p := range list {
		if p.Spec.NodeName == node && !ended(p) {
			found = append(found, OSDPod{Name: p.Name, OSD: osdIDOf(p.Labels)})
		}
	}
	slices.SortFunc(found, func(a, b OSDPod) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}
