package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxLog limits the part of a log that is read, in bytes.
const maxLog = 64 << 10

// PodLog returns at most 64 KiB of the log of a Pod with one container: the last lines, or with last 0 the log from the
// beginning. The API server reads the log from the node's kubelet. If the kubelet does not answer, the error is not
// ErrUnavailable, and [Terms.Unanswered] is not called.
func (c *Client) PodLog(ctx context.Context, namespace, name string, last int64) (string, error) {
	ctx, cancel := context.WithTimeout(Unreported(ctx), c.callTimeout)
	defer cancel()
	limit := int64(maxLog)
	options := &corev1.PodLogOptions{LimitBytes: &limit}
	if last > 0 {
		options.TailLines = &last
	}
	raw, err := c.core.Get().Namespace(namespace).Resource("pods").Name(name).SubResource("log").
		VersionedParams(options, c.params).MaxRetries(0).Do(ctx).Raw()
	this := call{"get", "pods/log", fullName(namespace, name)}
	if isForwardedFailure(err) {
		return "", fmt.Errorf("%s: the kubelet of its node does not return it: %v", this, err) //nolint:errorlint // for its status it would pass for one of the API server's own
	}
	return string(raw), this.fail(err)
}

// isForwardedFailure reports whether the API server answered with another server's failure.
func isForwardedFailure(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
