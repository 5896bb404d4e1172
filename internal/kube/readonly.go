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

// ErrReadOnly is the error of a read-only client for a change. It sent nothing.
var ErrReadOnly = errors.New("this EKCO is read-only, as in a dry run; nothing was changed")

type readsOnlyKey struct{}

// ReadsOnly returns a context for programs in pods, and for requests to pods, that change nothing. Only the
// caller knows what a program does; without this context it counts as a change.
func ReadsOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readsOnlyKey{}, true)
}

// readOnly sends requests that only read, and refuses all others with ErrReadOnly. It does not need to know
// what a request would change, so it also stops changes that the authors did not think of.
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

// reads reports whether a request changes nothing. What a GET through the API server does in a pod is unknown:
// for example, the GET of a WebSocket starts a program.
func reads(request *http.Request) bool {
	if forwards(request.URL.Path) {
		return request.Context().Value(readsOnlyKey{}) != nil
	}
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

// forwards reports whether the API server forwards the request to a pod or node. A proxy before the API server
// may add a path prefix.
func forwards(path string) bool {
	parts := strings.Split(path, "/")
	for i, resource := range parts[:max(0, len(parts)-2)] {
		if slices.Contains(forwarding[resource], parts[i+2]) {
			return true
		}
	}
	return false
}

// forwarding are the subresources that the API server forwards.
var forwarding = map[string][]string{
	"pods":     {"exec", "attach", "portforward", "proxy"},
	"services": {"proxy"},
	"nodes":    {"proxy"},
}
