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

// Unreported returns a context for requests whose failures the caller handles itself: [Terms.Unanswered] is not called.
func Unreported(ctx context.Context) context.Context {
	return context.WithValue(ctx, unreportedKey{}, true)
}

// reporting is a transport that reports requests that the API server did not answer.
type reporting struct {
	next   http.RoundTripper
	report func(error)
}

var _ utilnet.RoundTripperWrapper = (*reporting)(nil)

// RoundTrip sends the request, and reports it if there is no answer. It also reports attempts that client-go repeats.
func (t *reporting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	switch {
	case request.Context().Value(unreportedKey{}) != nil:
	case err != nil:
		t.reportIfUnanswered(request, clientError(request, err))
	case noAnswer(response.StatusCode):
		t.reportIfUnanswered(request, apierrors.NewGenericServerResponse(response.StatusCode, request.Method, schema.GroupResource{}, "", "", 0, true))
	case isFinite(request, response):
		response.Body = &watchedBody{response.Body, func(err error) { t.reportIfUnanswered(request, err) }}
	}
	return response, err
}

// WrappedRoundTripper gives client-go the inner transport.
func (t *reporting) WrappedRoundTripper() http.RoundTripper { return t.next }

// reportIfUnanswered reports err if the caller would get an ErrUnavailable. It ignores cancelled requests.
func (t *reporting) reportIfUnanswered(request *http.Request, err error) {
	if errors.Is(request.Context().Err(), context.Canceled) || !errors.Is(Sentinel(err), ErrUnavailable) {
		return
	}
	verb, resource := describe(request)
	t.report(call{verb: verb, resource: resource}.fail(err))
}

// clientError converts a transport's error like [http.Client]. For a refused WebSocket it returns the cause, because
// the client may continue with another protocol.
func clientError(request *http.Request, err error) error {
	var refused *httpstream.UpgradeFailureError
	if errors.As(err, &refused) {
		return refused.Cause
	}
	return &url.Error{Op: request.Method, URL: request.URL.Redacted(), Err: err}
}

// isFinite reports whether an answer has an expected end. The answers of a watch and of an upgraded connection have
// none, and their readers handle every end.
func isFinite(request *http.Request, response *http.Response) bool {
	return response.StatusCode != http.StatusSwitchingProtocols && request.URL.Query().Get("watch") == ""
}

// watchedBody calls broken if the body of an answer ends early.
type watchedBody struct {
	io.ReadCloser
	broken func(error)
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.broken(err)
	}
	return n, err
}
