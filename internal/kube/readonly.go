package kube

import (
	"errors"
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ErrReadOnly is returned by a client that only reads, when it was asked to change
// something. Nothing was sent.
var ErrReadOnly = errors.New("this EKCO only reads, as in a dry run; nothing was changed")

// ReadOnly returns a transport that sends requests that only read, and those that
// may says, and answers all others with [ErrReadOnly]. It knows nothing of what
// they would change, so that it also stops changes which nobody has thought of.
func ReadOnly(next http.RoundTripper, may func(*http.Request) bool) http.RoundTripper {
	return &readOnly{next: next, may: may}
}

type readOnly struct {
	next http.RoundTripper
	may  func(*http.Request) bool
}

var _ utilnet.RoundTripperWrapper = (*readOnly)(nil)

// RoundTrip sends the request or refuses it.
func (t *readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead
	if reads || (t.may != nil && t.may(request)) {
		return t.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // it was not sent, so nothing of it is lost
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, ErrReadOnly)
}

// WrappedRoundTripper lets client-go reach the connections below.
func (t *readOnly) WrappedRoundTripper() http.RoundTripper { return t.next }
