package kube

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/journal"
)

// unreadyPod has everything that a pod's status is read from, and more.
func unreadyPod() *corev1.Pod {
	controls := true
	started := metav1.NewTime(time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("CET", 3600)))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "x", Name: "p", UID: "u", ResourceVersion: "9", Labels: map[string]string{"app": "a"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: "DaemonSet", Name: "d", Controller: &controls}},
		},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
				{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: started},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "c", Ready: true, Image: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}},
				{Name: "d", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
			},
		},
	}
}

func TestAPodsStatusIsReadWholeOrSlim(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := Pod{
		PodRef: journal.PodRef{Namespace: "x", Name: "p", UID: "u"}, Node: "n", Controller: Controller{Kind: "DaemonSet", Name: "d"},
		Status: PodStatus{Phase: "Running", NotReadySince: started, Containers: []Container{{"c", true, started}, {Name: "d"}}},
	}
	pod := unreadyPod()
	if diff := cmp.Diff(want, PodWithStatusOf(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	SlimWithStatus(pod)
	if diff := cmp.Diff(want, PodWithStatusOf(pod)); diff != "" {
		t.Errorf("of the slim pod (-want +got):\n%s", diff)
	}
	if pod.Spec.Containers != nil || pod.Labels != nil || pod.Status.PodIP != "" || pod.Status.ContainerStatuses[0].Image != "" || pod.ResourceVersion != "9" {
		t.Errorf("the slim pod is %+v", pod)
	}
}

func TestAPodWithAnotherConditionIsNotUnready(t *testing.T) {
	for name, change := range map[string]func(*corev1.PodCondition){
		"ready":       func(c *corev1.PodCondition) { c.Status = corev1.ConditionTrue },
		"not known":   func(c *corev1.PodCondition) { c.Status = corev1.ConditionUnknown },
		"ended":       func(c *corev1.PodCondition) { c.Reason = "PodCompleted" },
		"of the node": func(c *corev1.PodCondition) { c.Type = corev1.PodReady },
	} {
		pod := unreadyPod()
		change(&pod.Status.Conditions[1])
		if since := PodWithStatusOf(pod).Status.NotReadySince; !since.IsZero() {
			t.Errorf("%s: not ready since %s", name, since)
		}
	}
}

func TestPodsAreSelectedByNamespaceAndLabel(t *testing.T) {
	s := newServer(t, map[string]any{
		"GET /api/v1/namespaces/x/pods": &corev1.PodList{Items: []corev1.Pod{*unreadyPod()}},
	})
	source := s.client(Options{}).PodsLabelled("x", "app", "a")
	listed, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	query, _ := url.ParseQuery(s.last().query)
	pod := listed.(*corev1.PodList).Items[0]
	if query.Get("labelSelector") != "app=a" || pod.Labels != nil || len(pod.Status.ContainerStatuses) != 2 {
		t.Errorf("asked with %v, got %+v", query, pod)
	}
	streamed := runtime.Object(unreadyPod())
	source.(Slimmer).Slim(streamed)
	if diff := cmp.Diff(PodWithStatusOf(&pod), PodWithStatusOf(streamed.(*corev1.Pod))); diff != "" {
		t.Errorf("streamed (-listed +streamed):\n%s", diff)
	}
}
