package kube

import (
	"errors"
	"fmt"
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
