package execserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
)

// recheckPeriod is how often a container is checked again while a program runs on its behalf.
const recheckPeriod = 500 * time.Millisecond

// refusal is the reason why an exec is refused, in the form that clients get from the API server.
type refusal struct {
	code    int // the HTTP status
	message string
}

func (r *refusal) Error() string { return r.message }

// write answers a request that was not upgraded.
func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // the client may have disconnected
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(r.code), Message: r.message,
	})
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// refusalOf converts any error to a refusal.
func refusalOf(err error) *refusal {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused
	}
	return refuse(http.StatusInternalServerError, "%s", err)
}

// admit returns a refusal or an API error unless the container runs on a node that is not lost. It reads nothing from a
// cache.
func (s *sessions) admit(ctx context.Context, c container) error {
	pod, err := s.api.CoreV1().Pods(c.namespace).Get(ctx, c.pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return refuse(http.StatusNotFound, "pod %s/%s does not exist", c.namespace, c.pod)
	}
	if err != nil {
		return fmt.Errorf("cannot read pod %s/%s: %w", c.namespace, c.pod, err)
	}
	if err := s.reachable(ctx, pod.Spec.NodeName); err != nil {
		return err
	}
	return runs(pod, c.name)
}

// reachable returns a refusal if the kubelet does not answer, with the API server's message for that case.
func (s *sessions) reachable(ctx context.Context, name string) error {
	node, err := s.api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return refuse(http.StatusInternalServerError, "error dialing backend: node %q does not exist", name)
	case err != nil:
		return fmt.Errorf("cannot read node %s: %w", name, err)
	case !cluster.HasKubelet(node):
		return refuse(http.StatusInternalServerError, "error dialing backend: node %q is lost", name)
	}
	return nil
}

// runs returns a refusal unless a container of a pod runs.
func runs(pod *corev1.Pod, name string) error {
	if pod.DeletionTimestamp != nil {
		return refuse(http.StatusInternalServerError, "container not running (%q): pod %s/%s is terminating", name, pod.Namespace, pod.Name)
	}
	for _, list := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range list {
			if list[i].Name == name && list[i].State.Running != nil && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
	}
	return refuse(http.StatusInternalServerError, "container not running (%q): pod %s/%s is %s", name, pod.Namespace, pod.Name, pod.Status.Phase)
}

// guard checks a container repeatedly until ctx ends, and cancels when an exec would now be refused. It does not cancel
// if the API does not answer.
func (s *sessions) guard(ctx context.Context, c container, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(recheckPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var refused *refusal
		if errors.As(s.admit(ctx, c), &refused) {
			cancel(refused)
			return
		}
	}
}
