package rook

import (
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
)

// call is the description of a request for errors.
type call struct {
	verb, resource, name string
}

func (c call) String() string {
	if c.name == "" {
		return fmt.Sprintf("%s %s in namespace %s", c.verb, c.resource, Namespace)
	}
	return fmt.Sprintf("%s %s %s/%s", c.verb, c.resource, Namespace, c.name)
}

// fail adds the call and the matching sentinel error of package kube to err.
func (c call) fail(err error) error {
	sentinel := kube.Sentinel(err)
	switch {
	case err == nil:
		return nil
	case sentinel == nil || errors.Is(err, sentinel):
		return fmt.Errorf("%s: %w", c, err)
	case errors.Is(sentinel, kube.ErrForbidden):
		return fmt.Errorf("%s: %w: EKCO's service account needs verb %q on %s in namespace %s (deploy/rbac-rook.yaml has the rules): %w",
			c, sentinel, c.verb, c.resource, Namespace, err)
	}
	return fmt.Errorf("%s: %w: %w", c, sentinel, err)
}

// isAbsent reports whether an error means that the object, or all of Rook, does not exist. It returns false for a
// forbidden read.
func isAbsent(err error) bool { return errors.Is(err, kube.ErrNotFound) }
