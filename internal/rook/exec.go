package rook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/remotecommand"
	clientexec "k8s.io/client-go/util/exec"

	"github.com/replicatedhq/ekco/internal/kube"
)

// longestOutput is how much of a program's output is kept, in bytes; the answer
// about a thousand OSDs has one million.
const longestOutput = 64 << 20

// Exec implements [API]. It speaks WebSocket, and SPDY where that is refused: by
// old API servers, and where only the verb create is granted on pods/exec, as
// kURL does, because a WebSocket begins with a GET.
func (c *Client) Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	this := call{"create", "pods/exec", pod.Name}
	executor, err := c.executor(c.execURL(pod, argv))
	if err != nil {
		return nil, nil, 0, this.fail(err)
	}
	out, problems := &limited{left: longestOutput}, &limited{left: longestOutput}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: problems})
	// Until the streams have ended their buffers are not to be read.
	var exit clientexec.CodeExitError
	switch {
	case ctx.Err() != nil:
		return nil, nil, 0, fmt.Errorf("%s: %w", this, context.Cause(ctx))
	case out.overflowed || problems.overflowed:
		return nil, nil, 0, fmt.Errorf("%s: %s wrote more than %d MiB", this, argv[0], longestOutput>>20)
	case errors.As(err, &exit):
		return out.Bytes(), problems.Bytes(), exit.Code, nil
	case err != nil:
		return nil, nil, 0, this.fail(err)
	}
	return out.Bytes(), problems.Bytes(), 0, nil
}

func (c *Client) execURL(pod Pod, argv []string) *url.URL {
	request := c.rest.Post().AbsPath(pods.path(pod.Name, "exec")...).
		Param("container", pod.Container).Param("stdout", "true").Param("stderr", "true")
	for _, arg := range argv {
		request = request.Param("command", arg)
	}
	return request.URL()
}

func (c *Client) executor(at *url.URL) (remotecommand.Executor, error) {
	webSocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", at.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", at)
	if err != nil {
		return nil, err
	}
	// Nothing has been started when the upgrade failed.
	return remotecommand.NewFallbackExecutor(webSocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// limited keeps what is written to it, up to a limit.
type limited struct {
	bytes.Buffer
	left       int
	overflowed bool
}

var errTooLong = errors.New("the output is too long")

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		l.overflowed = true
		return 0, errTooLong
	}
	l.left -= len(p)
	return l.Buffer.Write(p)
}

// Runner runs programs in the pod that has ceph. It implements the Runner of
// package ceph.
type Runner struct {
	API API
	// Version selects the pod.
	Version func(ctx context.Context) (Version, error)
}

// Run runs argv in a pod that it looks up anew each time, because the one of
// before may be on the node that was lost. See [API.Exec].
func (r Runner) Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	version, err := r.Version(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	pod, err := r.API.ToolsPod(ctx, version)
	if err != nil {
		return nil, nil, 0, err
	}
	return r.API.Exec(ctx, pod, argv)
}

// VersionOf returns a function for [Runner] that asks Rook each time.
func VersionOf(api API) func(ctx context.Context) (Version, error) {
	return func(ctx context.Context) (Version, error) {
		found, err := api.Detect(ctx)
		if err == nil && !found.Present {
			err = fmt.Errorf("detect Rook: %w: %s", kube.ErrNotFound, found.Why)
		}
		return found.Version, err
	}
}
