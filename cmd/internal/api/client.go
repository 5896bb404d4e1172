package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// dialTimeout is how long an operator may take to answer a ping. On a busy host that can be seconds.
const dialTimeout = 10 * time.Second

// Client calls the operator over its socket. It implements [Backend]. The operator ignores the Actor of a request,
// because it identifies the client itself.
type Client struct {
	path string
	http *http.Client
}

var _ Backend = (*Client)(nil)

// Dial returns a client of the operator that listens on the socket. It returns ErrNoOperator if no process listens,
// ErrNoAnswer if a process listens but does not answer for 10 s, and ErrForbidden if the user may not use the socket.
func Dial(ctx context.Context, path string) (*Client, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	c := &Client{path: path, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "unix", path)
			if err != nil {
				return nil, err
			}
			if err := peerOf(conn).requireAllowed(); err != nil { // any user can create a socket in a shared directory
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
		MaxIdleConns:       2,
		IdleConnTimeout:    30 * time.Second,
		DisableCompression: true,
	}}}
	wait, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, err := callMethod[nothing](wait, c, pathPing, nothing{})
	if err == nil {
		return c, nil
	}
	c.Close()
	if wait.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("call the operator on %s: %w", path, ErrNoAnswer)
	}
	return nil, err
}

// Close closes idle connections. Streams in progress continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func callMethod[Out any](ctx context.Context, c *Client, path string, in any) (Out, error) {
	var out answer[Out]
	body, err := json.Marshal(in)
	if err != nil {
		return out.Value, fmt.Errorf("write the request: %w", err)
	}
	response, err := c.post(ctx, path, bytes.NewReader(body))
	if err != nil {
		return out.Value, err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		return out.Value, fmt.Errorf("read the operator's answer to %s (%s): %w", path, response.Status, lostAnswer(err))
	}
	if out.Error != nil {
		return out.Value, out.Error.err()
	}
	return out.Value, nil
}

func (c *Client) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ekco"+path, body)
	if err != nil {
		return nil, fmt.Errorf("call the operator on %s: %w", c.path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if sudo := plainName(os.Getenv("SUDO_USER")); sudo != "" {
		request.Header.Set(sudoHeader, sudo)
	}
	response, err := c.http.Do(request)
	switch {
	case err == nil:
		return response, nil
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("call the operator on %s: %w", c.path, ErrNoOperator)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("call the operator on %s: %w", c.path, ErrForbidden)
	}
	return nil, fmt.Errorf("call the operator on %s: %w", c.path, lostAnswer(err))
}

// lostAnswer explains a connection that ended before the answer, because the operator ended or was killed.
func lostAnswer(err error) error {
	if posted, ok := errors.AsType[*url.Error](err); ok {
		err = posted.Err // without the URL, which means nothing on a socket
	}
	err = withoutAddress(err)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("EKCO ended while it answered; ask again in 10 s: %w", err)
	}
	return err
}

// withoutAddress removes the address from the error of a broken connection. The address is a temporary name of the
// socket that no longer exists.
func withoutAddress(err error) error {
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		return broken.Err
	}
	return err
}

// Status implements [Backend].
func (c *Client) Status(ctx context.Context) (Status, error) {
	return callMethod[Status](ctx, c, pathStatus, nothing{})
}

// Explain implements [Backend].
func (c *Client) Explain(ctx context.Context, request fsm.Request) (Explanation, error) {
	return callMethod[Explanation](ctx, c, pathExplain, request)
}

// ExplainThing implements [Backend].
func (c *Client) ExplainThing(ctx context.Context, request ThingRequest) ([]ThingExplanation, error) {
	return callMethod[[]ThingExplanation](ctx, c, pathThing, request)
}

// Request implements [Backend].
func (c *Client) Request(ctx context.Context, request fsm.Request) (Admission, error) {
	return callMethod[Admission](ctx, c, pathRequest, request)
}

// Do implements [Backend].
func (c *Client) Do(ctx context.Context, command Command) error {
	_, err := callMethod[nothing](ctx, c, command.path(), command)
	return err
}

// Verify implements [Backend].
func (c *Client) Verify(ctx context.Context) (VerifyResult, error) {
	return callMethod[VerifyResult](ctx, c, pathVerify, nothing{})
}

// Import implements [Backend].
func (c *Client) Import(ctx context.Context, from string, r io.Reader) (journal.JournalImported, error) {
	response, err := c.post(ctx, pathImport+"?"+url.Values{importedFrom: {from}}.Encode(), r)
	if err != nil {
		return journal.JournalImported{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var out answer[journal.JournalImported]
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		return out.Value, fmt.Errorf("read the operator's answer to the import: %w", lostAnswer(err))
	}
	if out.Error != nil {
		return out.Value, out.Error.err()
	}
	return out.Value, nil
}
