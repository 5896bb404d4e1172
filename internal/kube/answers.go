package kube

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Lacking names the permission that an [ErrForbidden] is about, and leaves any other
// error as it is.
func Lacking(err error, verb, resource string) error {
	if errors.Is(err, ErrForbidden) {
		return &lackingError{verb, resource, err}
	}
	return err
}

// lackingError is a permission that EKCO does not have.
type lackingError struct {
	verb, resource string
	cause          error
}

// Error implements error.
func (e *lackingError) Error() string {
	// What a failed call says of a permission is said already: of it the API's own words are left.
	if status, is := errors.AsType[*apierrors.StatusError](e.cause); is {
		return fmt.Sprintf("%s; grant it (the manifests rbac*.yaml have the rules): %v", e.Lacks(), status)
	}
	return fmt.Sprintf("%s: %v", e.Lacks(), e.cause)
}

// Lacks says which permission, without what the API answered.
func (e *lackingError) Lacks() string {
	return fmt.Sprintf("EKCO's service account lacks the permission to %s %s", e.verb, e.resource)
}

// Unwrap returns the answer of the API.
func (e *lackingError) Unwrap() error { return e.cause }

// Key names the permission.
func (e *lackingError) Key() string { return "forbidden: " + e.verb + " " + e.resource }

// Deleted takes a deletion that found its object already gone for a success.
func Deleted(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherUID) {
		return nil
	}
	return err
}
