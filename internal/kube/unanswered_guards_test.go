package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/client-go/rest"
)

// sends makes a request through a transport that reports.
func sends(ctx context.Context, t *testing.T, told *reports, next roundTrip) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/api/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, _ := (&reporting{next: next, report: told.add}).RoundTrip(request) // what was told matters
	return response
}

func TestAnAnswerThatBreaksOffIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		broken error
		want   int
	}{"breaks off": {io.ErrUnexpectedEOF, 1}, "ends": {io.EOF, 0}} {
		var told reports
		response := sends(t.Context(), t, &told, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(test.broken))}, nil
		})
		if _, err := response.Body.Read(make([]byte, 1)); !errors.Is(err, test.broken) {
			t.Errorf("%s: read %v", name, err)
		}
		if err := response.Body.Close(); err != nil || len(told.all()) != test.want {
			t.Errorf("%s: reported was %v (%v)", name, told.all(), err)
		}
	}
}

func TestAnUpgradedConnectionIsHandedOnAsItIs(t *testing.T) {
	var told reports
	ours, theirs := net.Pipe()
	defer theirs.Close()
	response := sends(t.Context(), t, &told, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: ours}, nil
	})
	if response.Body != io.ReadCloser(ours) {
		t.Errorf("the connection became a %T", response.Body)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatFailsOnceNobodyWaitsIsNotReported(t *testing.T) {
	var told reports
	ctx, stopWaiting := context.WithCancel(t.Context())
	sends(ctx, t, &told, func(*http.Request) (*http.Response, error) { //nolint:bodyclose // there is none
		stopWaiting()
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	})
	if len(told.all()) != 0 {
		t.Errorf("reported was %v", told.all())
	}
}

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestTheBodyOfARefusedChangeIsClosed(t *testing.T) {
	body := &closing{Reader: strings.NewReader("body")}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://api/api/v1/nodes/a", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&readOnly{}).RoundTrip(request); !errors.Is(err, ErrReadOnly) || !body.closed { //nolint:bodyclose // there is none
		t.Errorf("closed is %v, with error %v", body.closed, err)
	}
}

func TestWhoeverConnectsKeepsToTheTerms(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const content = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var told reports
	config, err := Connect(kubeconfig, Terms{ReadOnly: true, Unanswered: told.add})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Post(config.Host+"/api/v1/nodes", "", strings.NewReader("body")); !errors.Is(err, ErrReadOnly) || len(told.all()) != 0 { //nolint:bodyclose // there is none
		t.Errorf("a change: %v; reported was %v", err, told.all())
	}
	if _, err := client.Get(config.Host + "/api/v1/nodes"); err == nil || len(told.all()) != 1 { //nolint:bodyclose // there is none
		t.Errorf("nobody answers: %v; reported was %v", err, told.all())
	}
}
