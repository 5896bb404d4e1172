package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/retry"
)

// Sentinel returns the sentinel error of this package that matches an error of this package or of client-go, or nil. It
// never returns ErrOtherUID for an error of client-go, because the API server reports another UID as a conflict.
func Sentinel(err error) error {
	for _, known := range []error{ErrNotFound, ErrForbidden, ErrOtherUID, ErrConflict, ErrReadOnly, ErrUnavailable} {
		if errors.Is(err, known) {
			return known
		}
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return ErrNotFound
	case apierrors.IsForbidden(err):
		return ErrForbidden
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ErrConflict
	case unavailable(err):
		return ErrUnavailable
	}
	return nil
}

// Retry calls change until it returns another result than the error conflict, at most five times. That error means that
// another client has changed the object, so change must read the object each time.
func Retry(conflict error, change func() error) error {
	return retry.OnError(retry.DefaultRetry, func(err error) bool { return errors.Is(err, conflict) }, change)
}

// unavailable reports whether the API server gave no answer, or reported that it cannot answer now. This includes a
// rejected token: the kubelet renews expired tokens, and a starting API server rejects valid tokens.
func unavailable(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return noAnswer(int(status.Status().Code))
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}

// noAnswer reports whether a status means that the API server cannot answer now.
func noAnswer(code int) bool {
	return code >= http.StatusInternalServerError ||
		code == http.StatusTooManyRequests || code == http.StatusUnauthorized
}

// etcdWithoutQuorum reports whether the API server returned etcd's error that etcd has no quorum.
func etcdWithoutQuorum(err error) bool {
	text := err.Error()
	return strings.Contains(text, "etcdserver: no leader") || strings.Contains(text, "etcdserver: request timed out")
}

// call is the description of a request for errors.
type call struct {
	verb, resource string
	// name is empty for a list or a watch.
	name string
}

func (c call) String() string {
	if c.name == "" {
		return c.verb + " " + c.resource
	}
	return c.verb + " " + c.resource + " " + c.name
}

// fail adds the call, the matching sentinel error and advice to err. It returns nil if err is nil.
func (c call) fail(err error) error {
	if err == nil {
		return nil
	}
	sentinel := Sentinel(err)
	switch {
	case sentinel == nil || errors.Is(err, sentinel):
		return fmt.Errorf("%s: %w", c, err)
	case errors.Is(sentinel, ErrForbidden):
		return fmt.Errorf("%s: %w: EKCO's service account needs verb %q on %s; grant it (%s): %w",
			c, sentinel, c.verb, c.resource, WhereRulesAre, err)
	case errors.Is(sentinel, ErrUnavailable) && etcdWithoutQuorum(err):
		return fmt.Errorf("%s: %w, because etcd has no quorum; bring members of etcd back: %w", c, sentinel, err)
	case errors.Is(sentinel, ErrUnavailable):
		return fmt.Errorf("%s: %w; check that kube-apiserver runs and can be reached: %w", c, sentinel, err)
	case errors.Is(sentinel, ErrConflict):
		return fmt.Errorf("%s: %w; read it again and repeat: %w", c, sentinel, err)
	}
	return fmt.Errorf("%s: %w: %w", c, sentinel, err)
}
