package kube

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Lacking adds the missing permission to an [ErrForbidden], and returns any other error unchanged.
func Lacking(err error, verb, resource string) error {
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
	// The text of a failed call already names the permission, so only the API's own text follows.
	if status, is := errors.AsType[*apierrors.StatusError](e.cause); is {
		return fmt.Sprintf("%s; grant it (the manifests rbac*.yaml have the rules): %v", e.Lacks(), status)
	}
	return fmt.Sprintf("%s: %v", e.Lacks(), e.cause)
}

// Lacks names the missing permission, without the API's answer.
func (e *lackingError) Lacks() string {
	return fmt.Sprintf("EKCO's service account lacks the permission to %s %s", e.verb, e.resource)
}

// Unwrap returns the answer of the API.
func (e *lackingError) Unwrap() error { return e.cause }

// Key names the permission.
func (e *lackingError) Key() string { return "forbidden: " + e.verb + " " + e.resource }

// Deleted returns nil for a deletion whose object was already gone.
func Deleted(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherUID) {
		return nil
	}
	return err
}
