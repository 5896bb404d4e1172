// Package podexec runs programs in containers of pods.
package podexec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // spdy.Upgrader still returns its type
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	clientexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	streaming "k8s.io/streaming/pkg/httpstream"

	"github.com/replicatedhq/ekco/internal/kube"
)

// The maximum output of a program, in KiB. Ceph's answer about a thousand OSDs has about 1000 KiB, and EKCO has little
// memory.
const (
	maxStdout = 8 << 10
	maxStderr = 64
)

// Pod names a container.
type Pod struct{ Namespace, Name, Container string }

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Client runs programs. It is safe for concurrent use.
type Client struct {
	rest    rest.Interface
	config  *rest.Config
	refusal *refusal
}

// New returns a client for the API server of config. It does not change config, and sends no request. If userAgent is
// not empty, it is EKCO's name in the API server's audit log.
func New(config *rest.Config, userAgent string) (*Client, error) {
	config = kube.Options{UserAgent: userAgent}.ClientConfig(config, nil)
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for programs in pods at %s: %w", config.Host, err)
	}
	return &Client{rest: client, config: config, refusal: &refusal{now: time.Now}}, nil
}

// Exec runs argv in a pod, without a shell, and waits for it. The error is nil if the program ended, whatever
// its exit code is; other errors wrap the sentinels of package kube. Exec ends with ctx, but the program in the
// pod may continue. Too much output is an error. A read-only client returns kube.ErrReadOnly unless ctx is a
// kube.ReadsOnly.
func (c *Client) Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, problems := newLimited("stdout", maxStdout, stop), newLimited("stderr", maxStderr, stop)
	exitCode, err = c.Interact(ctx, pod, argv, nil, out, problems)
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		return nil, nil, 0, fmt.Errorf("%s: %s %w", execIn(pod), argv[0], context.Cause(ctx))
	case err != nil:
		// Do not return the output: the buffers may still be written to.
		return nil, nil, 0, err
	}
	return out.kept.Bytes(), problems.kept.Bytes(), exitCode, nil
}

// Interact is [Client.Exec] for a program that reads stdin. It passes on the output while the program runs. After ctx
// has ended, stdout and stderr may still be written to.
//
// It uses WebSocket, or SPDY if the API server refuses WebSocket. Old API servers do. Others do if EKCO has only the
// verb create on pods/exec, as with kURL, because a WebSocket begins with a GET. Interact remembers a refusal for ten
// minutes, or until SPDY fails too.
func (c *Client) Interact(ctx context.Context, pod Pod, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	unsent := &unsent{}
	executor, err := c.executor(c.url(pod, argv, stdin != nil), unsent)
	if err != nil {
		return 0, fail(pod, err)
	}
	// client-go must not log the errors, because this function returns them.
	quiet := klog.NewContext(ctx, logr.Discard())
	err = executor.StreamWithContext(quiet, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	var exit clientexec.CodeExitError
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%s: %w", execIn(pod), context.Cause(ctx))
	case errors.As(err, &exit):
		return exit.Code, nil
	case err != nil:
		c.refusal.forget()
		return 0, fail(pod, cmp.Or(unsent.err, err))
	}
	return 0, nil
}

// execIn names the request in errors.
func execIn(pod Pod) string { return "create pods/exec " + pod.String() }

// fail adds the request and the sentinel of package kube.
func fail(pod Pod, err error) error {
	sentinel := kube.Sentinel(err)
	switch {
	case sentinel == nil || errors.Is(err, sentinel):
		return fmt.Errorf("%s: %w", execIn(pod), err)
	case errors.Is(sentinel, kube.ErrForbidden):
		return fmt.Errorf("%s: %w: EKCO's service account needs verb \"create\" on pods/exec in namespace %s (%s): %w",
			execIn(pod), sentinel, pod.Namespace, kube.WhereRulesAre, err)
	}
	return fmt.Errorf("%s: %w: %w", execIn(pod), sentinel, err)
}

func (c *Client) url(pod Pod, argv []string, reads bool) *url.URL {
	request := c.rest.Post().AbsPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "exec").
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
	overSPDY, err := remotecommand.NewSPDYExecutorForTransports(unsent, fullRefusal{upgrader}, "POST", at)
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
	// If the upgrade failed, no program was started, so SPDY can be tried.
	return remotecommand.NewFallbackExecutor(webSocket, overSPDY, func(err error) bool {
		refused := streaming.IsUpgradeFailure(err) || streaming.IsHTTPSProxyError(err)
		if refused {
			c.refusal.remember()
		}
		return refused
	})
}

// unsent keeps the error of a request over SPDY that got no answer. client-go itself keeps only the error's text.
type unsent struct {
	next http.RoundTripper
	err  error
}

func (u *unsent) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.next.RoundTrip(request)
	if err != nil {
		u.err = &url.Error{Op: request.Method, URL: request.URL.Path, Err: err}
	}
	return response, err
}

// fullRefusal keeps the API server's answer when it refuses SPDY. client-go itself keeps only the answer's text.
type fullRefusal struct{ spdy.Upgrader }

// NewConnection implements [spdy.Upgrader].
func (o fullRefusal) NewConnection(response *http.Response) (httpstream.Connection, error) {
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
