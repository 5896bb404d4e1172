package envoy

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hung is a pod whose proxy was started an hour ago, and is unready for half an hour.
func hung() *corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "projectcontour", Name: "envoy-a", UID: "1"},
		Spec:       corev1.PodSpec{NodeName: "w1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{
				Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
				LastTransitionTime: metav1.NewTime(noon.Add(-30 * time.Minute)),
			}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "shutdown-manager", Ready: true, State: running}, {Name: "envoy", State: running},
			},
		},
	}
}

func TestAPodHangsSinceAllOfItIsSo(t *testing.T) {
	startedAt := func(container int, at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[container].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		since  time.Time
	}{
		"as it is":                 {func(*corev1.Pod) {}, noon.Add(-30 * time.Minute)},
		"its proxy started anew":   {startedAt(1, noon), noon},
		"its manager started anew": {startedAt(0, noon.Add(-time.Minute)), noon.Add(-time.Minute)},
		"a third container crashes": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "sidecar"})
		}, noon.Add(-30 * time.Minute)},
	} {
		pod := hung()
		test.change(pod)
		if since, unready := Unready(kube.PodWithStatusOf(pod)); !unready || !since.Equal(test.since) {
			t.Errorf("%s: %t since %s, want since %s", name, unready, since, test.since)
		}
	}
}

func TestAPodThatIsUnreadyForAnotherReasonDoesNotHang(t *testing.T) {
	ended := metav1.NewTime(noon)
	for name, change := range map[string]func(*corev1.Pod){
		"pending":         func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		"failed":          func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"asked to end":    func(p *corev1.Pod) { p.DeletionTimestamp = &ended },
		"proxy ready":     func(p *corev1.Pod) { p.Status.ContainerStatuses[1].Ready = true },
		"proxy crashes":   func(p *corev1.Pod) { p.Status.ContainerStatuses[1].State = corev1.ContainerState{} },
		"manager unready": func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false },
		"manager crashes": func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} },
		"no manager":      func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[1:] },
		"a kubelet's own": func(p *corev1.Pod) {
			controls := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "w1", Controller: &controls}}
		},
		"no proxy":           func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] },
		"no statuses":        func(p *corev1.Pod) { p.Status.ContainerStatuses = nil },
		"containers ready":   func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue },
		"condition unknown":  func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionUnknown },
		"for another reason": func(p *corev1.Pod) { p.Status.Conditions[0].Reason = "PodCompleted" },
		"no condition":       func(p *corev1.Pod) { p.Status.Conditions = nil },
	} {
		pod := hung()
		change(pod)
		if since, unready := Unready(kube.PodWithStatusOf(pod)); unready {
			t.Errorf("%s: said to hang since %s", name, since)
		}
	}
}
