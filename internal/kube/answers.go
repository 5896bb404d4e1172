package kube

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Error implements error.
func (e *lackingError) Error() string {
	// The text of e.cause already names the permission, so use only the API server's text.
	if status, is := errors.AsType[*apierrors.StatusError](e.cause); is {
		return fmt.Sprintf("%s; grant it (the manifests rbac*.yaml have the rules): %v", e.Lacks(), status)
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

// IgnoreNotFound returns nil if the error of a deletion means that the object did not exist any more.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherUID) {
		return nil
	}
	return err
}
