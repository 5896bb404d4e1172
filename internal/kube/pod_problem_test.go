package kube

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const isReady = `"phase":"Running","conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]`

func TestPodProblemNamesTheReason(t *testing.T) {
	for content, want := range map[string]string{
		`{"status":{` + isReady + `}}`: "",
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{` + isReady + `}}`:                                                                                                                                      "Terminating",
		`{"spec":{"nodeName":"lost"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"Unknown"}]}}`:                                                                                                              "Running, not ready on node lost",
		`{"status":{"phase":"Failed","conditions":[{"type":"Ready","status":"True"}]}}`:                                                                                                                                             "Failed",
		`{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}],"containerStatuses":[{"name":"a","state":{"waiting":{"reason":"b"}}}]}}`:                 "Pending: Unschedulable: no room",
		`{"status":{"phase":"Pending","initContainerStatuses":[{"name":"a","state":{"waiting":{"reason":"ImagePullBackOff"}}}],"containerStatuses":[{"name":"b","state":{"waiting":{"reason":"PodInitializing"}}},{"name":"c"}]}}`:  "Pending: container a: ImagePullBackOff, container b: PodInitializing",
		`{"status":{"phase":"Running","containerStatuses":[{"name":"a","restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m0s"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`: "Running: container a: CrashLoopBackOff (last ended with exit code 1, Error)",
		`{}`: "Unknown",
	} {
		pod, err := Decode[corev1.Pod](Ref{}, json.RawMessage(content), nil)
		if got := PodProblem(&pod); err != nil || got != want || PodReady(&pod) != (want == "") {
			t.Errorf("%s: %v: got %q, want %q", content, err, got, want)
		}
	}
}

func TestDecodeReturnsNothingWithAnError(t *testing.T) {
	if _, err := Decode[corev1.Pod](Ref{}, nil, ErrNotFound); !errors.Is(err, ErrNotFound) {
		t.Errorf("a failed call: %v", err)
	}
	if pod, err := Decode[corev1.Pod](Ref{}, json.RawMessage(`{"metadata":{"name":"a","labels":7}}`), nil); err == nil || pod.Name != "" {
		t.Errorf("another shape: %v: %s", err, pod.Name)
	}
}
