package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestALackingPermissionIsNamedAndHasAKey(t *testing.T) {
	err := NamePermission(fmt.Errorf("get: %w", ErrForbidden), "get", "nodes")
	if !errors.Is(err, ErrForbidden) || err.Error() != "EKCO's service account lacks the permission to get nodes: get: forbidden" {
		t.Errorf("it says %v", err)
	}
	if keyed, ok := errors.AsType[*lackingError](err); !ok || keyed.Key() != "forbidden: get nodes" {
		t.Errorf("%T has another key", err)
	}
	if other := NamePermission(ErrUnavailable, "get", "nodes"); other.Error() != ErrUnavailable.Error() {
		t.Errorf("another error became %v", other)
	}
}

// TestALackingPermissionIsToldOnce: a call that is forbidden names it, and so does the API.
func TestALackingPermissionIsToldOnce(t *testing.T) {
	const says = `pods "p" is forbidden: User "system:serviceaccount:kurl:ekco" cannot create resource "pods"`
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(`User "system:serviceaccount:kurl:ekco" cannot create resource "pods"`))
	err := NamePermission(call{"create", "pods", "kurl/p"}.fail(refused), "create", "pods")
	want := "EKCO's service account lacks the permission to create pods; grant it (" + WhereRulesAre + "): " + says
	if err.Error() != want || !errors.Is(err, ErrForbidden) {
		t.Errorf("it says\n%v, want\n%s", err, want)
	}
}

func TestADeletionOfWhatIsGoneSucceeds(t *testing.T) {
	for _, gone := range []error{nil, ErrNotFound, ErrOtherUID} {
		if err := IgnoreNotFound(gone); err != nil {
			t.Errorf("%v: %v", gone, err)
		}
	}
	if err := IgnoreNotFound(ErrForbidden); !errors.Is(err, ErrForbidden) {
		t.Errorf("a failure became %v", err)
	}
}

func TestOfWhatStillExistsTheFinalizersAreNamedWithTheCommandThatRemovesThem(t *testing.T) {
	if got := StillExists("pod", "a", "b", nil); got != "pod a/b still exists; look at it: kubectl get pod b -n a -o yaml" {
		t.Errorf("without a finalizer it says %q", got)
	}
	const patch = `kubectl patch pod b -n a --type merge -p '{"metadata":{"finalizers":null}}'`
	if got := StillExists("pod", "a", "b", []string{"x/y", "z"}); !strings.HasPrefix(got, "waits for finalizers x/y, z on pod a/b; ") || !strings.HasSuffix(got, patch) {
		t.Errorf("with two it says %q", got)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"x/y"}}}
	if got := PodWithStatusOf(&pod).Finalizers; got != nil {
		t.Errorf("a pod that nobody deletes waits for %q", got)
	}
	pod.DeletionTimestamp = &metav1.Time{}
	if got := PodWithStatusOf(&pod).Finalizers; len(got) != 1 {
		t.Errorf("a pod that is being deleted waits for %q", got)
	}
}
