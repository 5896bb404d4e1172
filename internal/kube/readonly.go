package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ErrReadOnly is returned by a client that only reads, when it was asked to change
// something. Nothing was sent.
var ErrReadOnly = errors.New("this EKCO only reads, as in a dry run; nothing was changed")

type questionKey struct{}

// Question returns a context in which programs that are run in pods, and requests
// that are passed on to pods, change nothing. Only who knows what a program does
// can tell; where nobody says it, it is a change.
func Question(ctx context.Context) context.Context {
	return context.WithValue(ctx, questionKey{}, true)
}

// readOnly sends requests that only read, and answers all others with ErrReadOnly.
// It knows nothing of what they would change, so that it also stops changes which
// nobody has thought of.
type readOnly struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*readOnly)(nil)

// RoundTrip sends the request or refuses it.
func (t *readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if reads(request) {
		return t.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // it was not sent, so nothing of it is lost
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, ErrReadOnly)
}

// WrappedRoundTripper lets client-go reach the connections below.
func (t *readOnly) WrappedRoundTripper() http.RoundTripper { return t.next }

// reads reports whether a request changes nothing. What a GET through the API
// server does behind it is not known from the method: a program in a pod, for one,
// is started by the GET that a WebSocket begins with.
func reads(request *http.Request) bool {
	if connects(request.URL.Path) {
		return request.Context().Value(questionKey{}) != nil
	}
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

// connects reports whether a request is passed on to what runs in a pod, or on a
// node. A path may begin with that of a proxy before the API server.
func connects(path string) bool {
	parts := strings.Split(path, "/")
	for i, resource := range parts[:max(0, len(parts)-2)] {
		if slices.Contains(connecting[resource], parts[i+2]) {
			return true
		}
	}
	return false
}

// connecting are the subresources that pass requests on.
var connecting = map[string][]string{
	"pods":     {"exec", "attach", "portforward", "proxy"},
	"services": {"proxy"},
	"nodes":    {"proxy"},
}
