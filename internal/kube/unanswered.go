package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/streaming/pkg/httpstream"
)

type unreportedKey struct{}

// Unreported returns a context for requests of whose failures the caller tells by
// itself: [Terms.Unanswered] does not hear of them.
func Unreported(ctx context.Context) context.Context {
	return context.WithValue(ctx, unreportedKey{}, true)
}

// reporting tells of requests that the API server did not answer.
type reporting struct {
	next   http.RoundTripper
	report func(error)
}

var _ utilnet.RoundTripperWrapper = (*reporting)(nil)

// RoundTrip sends the request, and reports when there is no answer. Each try
// counts, also when client-go makes another one.
func (t *reporting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	switch {
	case request.Context().Value(unreportedKey{}) != nil:
	case err != nil:
		t.judge(request, asReturned(request, err))
	case noAnswer(response.StatusCode):
		t.judge(request, apierrors.NewGenericServerResponse(response.StatusCode, request.Method, schema.GroupResource{}, "", "", 0, true))
	case ends(request, response):
		response.Body = &attended{response.Body, func(err error) { t.judge(request, err) }}
	}
	return response, err
}

// WrappedRoundTripper lets client-go reach the connections below.
func (t *reporting) WrappedRoundTripper() http.RoundTripper { return t.next }

// judge reports err if it means what it means to who gets it. Who stopped waiting
// learned nothing.
func (t *reporting) judge(request *http.Request, err error) {
	if errors.Is(request.Context().Err(), context.Canceled) || !errors.Is(Sentinel(err), ErrUnavailable) {
		return
	}
	verb, resource := describe(request)
	t.report(call{verb: verb, resource: resource}.fail(err))
}

// asReturned makes of a transport's error what [http.Client] makes of it. A refused
// WebSocket is judged by why it was: it may be followed by another protocol.
func asReturned(request *http.Request, err error) error {
	var refused *httpstream.UpgradeFailureError
	if errors.As(err, &refused) {
		return refused.Cause
	}
	return &url.Error{Op: request.Method, URL: request.URL.Redacted(), Err: err}
}

// ends reports whether an answer is one that ends by itself: no watch, whose
// readers know what its end means, and no connection that was upgraded.
func ends(request *http.Request, response *http.Response) bool {
	return response.StatusCode != http.StatusSwitchingProtocols && request.URL.Query().Get("watch") == ""
}

// attended is the body of an answer that may break off.
type attended struct {
	io.ReadCloser
	broken func(error)
}

// Read implements [io.Reader].
func (b *attended) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.broken(err)
	}
	return n, err
}
