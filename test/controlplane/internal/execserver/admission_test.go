package execserver

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRequestsThatCannotBeServedAreRefusedWithAReason(t *testing.T) {
	tests := map[string]struct {
		program, url string
		code         int
		want         string
	}{
		"without a program": {"", "/exec/demo/pod/app?command=x&output=1", http.StatusNotImplemented, "--exec-handler"},
		"with a terminal":   {"/bin/true", "/exec/demo/pod/app?command=x&output=1&tty=1", http.StatusBadRequest, "terminal"},
		"without streams":   {"/bin/true", "/exec/demo/pod/app?command=x", http.StatusBadRequest, "stdout"},
		"for logs":          {"/bin/true", "/containerLogs/demo/pod/app", http.StatusNotImplemented, "not simulated"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &sessions{program: test.program, log: slog.New(slog.DiscardHandler)}
			answer := httptest.NewRecorder()
			s.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, test.url, nil))
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.want) {
				t.Errorf("got %d and %s: want %d and %q", answer.Code, answer.Body, test.code, test.want)
			}
		})
	}
}

func TestOnlyARunningContainerOfARunningPodIsAdmitted(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase:                 corev1.PodRunning,
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", State: running}, {Name: "crashed"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", State: running}, {Name: "init"}},
	}}
	for name, want := range map[string]bool{"app": true, "crashed": false, "sidecar": true, "init": false, "other": false} {
		if err := runs(pod, name); (err == nil) != want {
			t.Errorf("container %s: %v, want admitted %t", name, err, want)
		}
	}
	pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if err := runs(pod, "app"); err == nil || !strings.Contains(err.Error(), "terminating") {
		t.Errorf("in a terminating pod: %v", err)
	}
	pod.DeletionTimestamp, pod.Status.Phase = nil, corev1.PodFailed
	if err := runs(pod, "app"); err == nil || !strings.Contains(err.Error(), "Failed") {
		t.Errorf("in a failed pod: %v", err)
	}
}
