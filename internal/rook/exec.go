package rook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // spdy.Upgrader still returns its type
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	clientexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	streaming "k8s.io/streaming/pkg/httpstream"
)

// How much of a program's output is kept, in KiB: the answer about a thousand OSDs
// has about a thousand, and EKCO little memory.
const (
	longestStdout = 8 << 10
	longestStderr = 64
)

// Exec implements [API]. More output than is kept ends it with an error.
func (c *Client) Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, problems := newLimited("stdout", longestStdout, stop), newLimited("stderr", longestStderr, stop)
	exitCode, err = c.Converse(ctx, pod, argv, nil, out, problems)
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		return nil, nil, 0, fmt.Errorf("%s: %s %w", execIn(pod), argv[0], context.Cause(ctx))
	case err != nil:
		// The buffers may still be written to.
		return nil, nil, 0, err
	}
	return out.kept.Bytes(), problems.kept.Bytes(), exitCode, nil
}

// Converse implements [API]. It speaks WebSocket, and SPDY where that is refused: by
// old API servers, and where only the verb create is granted on pods/exec, as
// kURL does, because a WebSocket begins with a GET. A refusal is remembered for
// ten minutes, or until SPDY fails too.
func (c *Client) Converse(ctx context.Context, pod Pod, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	this := execIn(pod)
	unsent := &unsent{}
	executor, err := c.executor(c.execURL(pod, argv, stdin != nil), unsent)
	if err != nil {
		return 0, this.fail(err)
	}
	// What goes wrong is returned, and need not be logged too.
	quiet := klog.NewContext(ctx, logr.Discard())
	err = executor.StreamWithContext(quiet, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	var exit clientexec.CodeExitError
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%s: %w", this, context.Cause(ctx))
	case errors.As(err, &exit):
		return exit.Code, nil
	case err != nil:
		c.refusal.forget()
		return 0, this.fail(cmp.Or(unsent.err, err))
	}
	return 0, nil
}

func execIn(pod Pod) call { return call{"create", "pods/exec", pod.Name} }

func (c *Client) execURL(pod Pod, argv []string, reads bool) *url.URL {
	request := c.rest.Post().AbsPath(pods.path(pod.Name, "exec")...).
		Param("container", pod.Container).Param("stdout", "true").Param("stderr", "true")
	if reads {
		request = request.Param("stdin", "true")
	}
	for _, arg := range argv {
		request = request.Param("command", arg)
	}
	return request.URL()
}

func (c *Client) executor(at *url.URL, unsent *unsent) (remotecommand.Executor, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	unsent.next = transport
	overSPDY, err := remotecommand.NewSPDYExecutorForTransports(unsent, outspoken{upgrader}, "POST", at)
	if err != nil {
		return nil, err
	}
	if c.refusal.recent() {
		return overSPDY, nil
	}
	webSocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", at.String())
	if err != nil {
		return nil, err
	}
	// Nothing has been started when the upgrade failed.
	return remotecommand.NewFallbackExecutor(webSocket, overSPDY, func(err error) bool {
		refused := streaming.IsUpgradeFailure(err) || streaming.IsHTTPSProxyError(err)
		if refused {
			c.refusal.remember()
		}
		return refused
	})
}

// unsent keeps the error of a request over SPDY that had no answer, where client-go
// keeps only the text.
type unsent struct {
	next http.RoundTripper
	err  error
}

// RoundTrip implements [http.RoundTripper].
func (u *unsent) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.next.RoundTrip(request)
	if err != nil {
		u.err = &url.Error{Op: request.Method, URL: request.URL.Path, Err: err}
	}
	return response, err
}

// outspoken keeps what the API server says when it refuses SPDY, where client-go
// keeps only the text.
type outspoken struct{ spdy.Upgrader }

// NewConnection implements [spdy.Upgrader].
func (o outspoken) NewConnection(response *http.Response) (httpstream.Connection, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return o.Upgrader.NewConnection(response)
	}
	defer response.Body.Close()
	const enough = 64 << 10
	body, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil {
		return nil, fmt.Errorf("read the refusal: %w", err)
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" {
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return nil, apierrors.NewGenericServerResponse(response.StatusCode, "create", schema.GroupResource{Resource: "pods/exec"}, "", string(body), 0, true)
}
