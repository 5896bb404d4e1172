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

// ErrReadOnly is the error of a read-only client for a change. The client has not sent the request.
var ErrReadOnly = errors.New("this EKCO is read-only, as in a dry run; nothing was changed")

type readsOnlyKey struct{}

// ReadsOnly returns a context for requests to pods, and for programs in pods, that only read. Without it, they count as
// changes, because only the caller knows their effect.
func ReadsOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readsOnlyKey{}, true)
}

// readOnly sends requests that are known to only read, and refuses all others with ErrReadOnly, so that it cannot miss
// a request that changes something.
type readOnly struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*readOnly)(nil)

// RoundTrip sends the request or refuses it.
func (t *readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if reads(request) {
		return t.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // nothing was sent, so an error does not matter
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, ErrReadOnly)
}

// WrappedRoundTripper gives client-go the inner transport.
func (t *readOnly) WrappedRoundTripper() http.RoundTripper { return t.next }

// reads reports whether a request changes nothing. A GET that the API server forwards to a pod may change something:
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
