package minio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/podexec"
)

// Port is the port of each replica for clients and for health checks.
const Port = "9000"

// Servers asks a server for its health or the health of its cluster, and runs programs in the pods of servers.
type Servers interface {
	// Exec runs a program in a container of a server's pod, as [podexec.Client.Exec] does.
	Exec(ctx context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)
	// Health asks the server at an address. The address is a host, or a host and a port if the port is not [Port].
	// Health returns an error if there was no valid answer.
	Health(ctx context.Context, address string, question Question) (Answer, error)
}

// Question is a health check of MinIO.
type Question string

// The questions.
const (
	// Now asks whether enough drives work to write.
	Now Question = "/minio/health/cluster"
	// WithoutYou asks whether enough drives would work to write without the queried server.
	WithoutYou Question = "/minio/health/cluster?maintenance=true"
)

// Answer is the answer of a server to a [Question].
type Answer struct {
	Yes bool
	// Code is the HTTP status.
	Code int
	// Healing is the number of drives of other servers that are being restored. A server reports the number only in
	// an answer to [WithoutYou]. Then the answer is always no.
	Healing int
	// Quorum is the number of drives that a write needs. It is 0 if the server does not report it.
	Quorum int
}

// healthTimeout limits the time of a question. MinIO itself waits up to 10 s for its peers.
const healthTimeout = 5 * time.Second

// HTTP implements [Servers.Health] in a real cluster.
type HTTP struct {
	client *http.Client
}

// NewHTTP returns a client that opens a connection for each question.
func NewHTTP() HTTP {
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil, DialContext: (&net.Dialer{Timeout: healthTimeout}).DialContext}
	return HTTP{&http.Client{
		Transport: transport, Timeout: healthTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxBody limits the bytes that are read of an answer. EKCO uses only the headers.
const maxBody = 64 << 10

// Health implements [Servers].
func (h HTTP) Health(ctx context.Context, address string, question Question) (Answer, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, Port)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+string(question), nil)
	if err != nil {
		return Answer{}, fmt.Errorf("ask MinIO at %s for its health: %w", address, err)
	}
	response, err := h.client.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("ask MinIO at %s for its health: %w", address, err)
	}
	_, readErr := io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	if err := errors.Join(readErr, response.Body.Close()); err != nil {
		return Answer{}, fmt.Errorf("ask MinIO at %s for its health: %w", address, err)
	}
	answer := Answer{Yes: response.StatusCode == http.StatusOK, Code: response.StatusCode}
	for name, into := range map[string]*int{"X-Minio-Healing-Drives": &answer.Healing, "X-Minio-Write-Quorum": &answer.Quorum} {
		text := response.Header.Get(name)
		if text == "" {
			continue
		}
		if *into, err = strconv.Atoi(text); err != nil || *into < 0 {
			return Answer{}, fmt.Errorf("ask MinIO at %s for its health: its header %s is %q, want a number", address, name, text)
		}
	}
	return answer, nil
}

// Healthy implements [API].
func (c *Client) Healthy(ctx context.Context) error {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	return c.checkHealth(ctx, seen.pods)
}

// checkHealth returns nil if at least one replica reports that MinIO is healthy. Otherwise the error has the answers of
// all running replicas.
func (c *Client) checkHealth(ctx context.Context, pods []pod) error {
	said := make([]string, 0, len(pods))
	for _, pod := range pods {
		if !pod.runs() {
			continue
		}
		answer, err := c.servers.Health(ctx, pod.Status.PodIP, Now)
		switch {
		case err != nil:
			said = append(said, fmt.Sprintf("%s: %v", pod.Name, err))
		case !answer.Yes:
			said = append(said, fmt.Sprintf("%s: %s", pod.Name, answer))
		default:
			return nil
		}
	}
	if len(said) == 0 {
		return errors.New("no replica of MinIO runs, so none can report its health")
	}
	return fmt.Errorf("MinIO is not healthy: %s", strings.Join(said, "; "))
}

// String returns a message about an answer to [Now].
func (a Answer) String() string {
	switch {
	case a.Yes:
		return "healthy"
	case a.Quorum > 0:
		return fmt.Sprintf("fewer drives work than the %d that a write needs (HTTP status %d)", a.Quorum, a.Code)
	}
	return fmt.Sprintf("HTTP status %d", a.Code)
}
