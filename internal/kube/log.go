package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxLog bounds what is read of a log, in bytes.
const maxLog = 64 << 10

// PodLog returns the log of a Pod of one container: the last of its lines, or with 0 all
// from its beginning, 64 KiB at most. The API server asks the node's kubelet for it. One
// that does not answer is no ErrUnavailable, and [Terms.Unanswered] does not hear of it.
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
	if passedOn(err) {
		return "", fmt.Errorf("%s: the kubelet of its node does not give it: %v", this, err) //nolint:errorlint // for its status it would pass for one of the API server's own
	}
	return string(raw), this.fail(err)
}

// passedOn reports whether the API server answered, with what somebody else did not.
func passedOn(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
