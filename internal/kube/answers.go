package kube

import (
	"errors"
	"fmt"
)

// Lacking names the permission that an [ErrForbidden] is about, and leaves any other
// error as it is.
func Lacking(err error, verb, resource string) error {
	if errors.Is(err, ErrForbidden) {
		return fmt.Errorf("EKCO's service account lacks the permission to %s %s: %w", verb, resource, err)
	}
	return err
}

// Deleted takes a deletion that found its object already gone for a success.
func Deleted(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherUID) {
		return nil
	}
	return err
}
