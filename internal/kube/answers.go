package kube

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamePermission adds the missing permission to an [ErrForbidden]. It returns any other error unchanged.
func NamePermission(err error, verb, resource string) error {
	if errors.Is(err, ErrForbidden) {
		return &lackingError{verb, resource, err}
	}
	return err
}

// lackingError is the error of a missing permission.
type lackingError struct {
	verb, resource string
	cause          error
}

func (e *lackingError) Error() string {
	// The text of e.cause already names the permission, so use only the API server's text.
	if status, is := errors.AsType[*apierrors.StatusError](e.cause); is {
		return fmt.Sprintf("%s; grant it (%s): %v", e.Lacks(), WhereRulesAre, status)
	}
	return fmt.Sprintf("%s: %v", e.Lacks(), e.cause)
}

// Lacks returns a text that names the missing permission, without the API server's answer.
func (e *lackingError) Lacks() string {
	return fmt.Sprintf("EKCO's service account lacks the permission to %s %s", e.verb, e.resource)
}

// Unwrap returns the answer of the API.
func (e *lackingError) Unwrap() error { return e.cause }

// Key names the permission.
func (e *lackingError) Key() string { return "forbidden: " + e.verb + " " + e.resource }

// WhereRulesAre names the manifests that grant EKCO's permissions.
const WhereRulesAre = "the rules are in deploy/rbac.yaml, deploy/rook, deploy/minio, deploy/kotsadm and deploy/optional"

// StillExists returns a text about an object that was deleted and still exists. It names the finalizers that delay the
// deletion, with the command that removes them.
func StillExists(kind, namespace, name string, finalizers []string) string {
	object, named := name, kind+" "+name
	if namespace != "" {
		object, named = namespace+"/"+name, kind+" "+name+" -n "+namespace
	}
	if len(finalizers) == 0 {
		return fmt.Sprintf("%s %s still exists; look at it: kubectl get %s -o yaml", kind, object, named)
	}
	what, removed := "finalizer", "finalizer is removed: by its program"
	if len(finalizers) > 1 {
		what, removed = "finalizers", "finalizers are removed: by their programs"
	}
	return fmt.Sprintf("waits for %s %s on %s %s; it goes on when the %s, or with: "+
		`kubectl patch %s --type merge -p '{"metadata":{"finalizers":null}}'`, what, strings.Join(finalizers, ", "), kind, object, removed, named)
}

// DelayedBy returns the finalizers that delay the deletion of an object, or nil if it is not being deleted.
func DelayedBy(object metav1.ObjectMeta) []string {
	if object.DeletionTimestamp == nil {
		return nil
	}
	return object.Finalizers
}

// IgnoreNotFound returns nil if the error of a deletion means that the object did not exist any more.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherUID) {
		return nil
	}
	return err
}
