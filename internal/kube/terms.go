package kube

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Terms are on what terms the API server is asked. They are part of the
// configuration that [Connect] returns, and so of every client made from it, of
// this package or another one, whatever protocol it speaks: no client has to be
// told, and none can forget.
type Terms struct {
	// ReadOnly lets nothing change: what would is answered with ErrReadOnly. A
	// program that is run in a pod is a change, unless it is a [Question].
	ReadOnly bool
	// Unanswered, when set, is told of each request that the API server did not
	// answer, with an error that wraps ErrUnavailable; not of those that are
	// [Unreported]. It must not block.
	Unanswered func(error)
	// OnRequest, when set, is told of each request that was sent. It must not block.
	OnRequest OnRequest
}

// Bind makes the terms those of every client that is made from config.
func (t Terms) Bind(config *rest.Config) {
	if t.OnRequest != nil {
		config.Wrap(t.OnRequest.wrap)
	}
	if t.Unanswered != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &reporting{next: next, report: t.Unanswered} })
	}
	// What is refused is not sent, and so is neither counted nor reported.
	if t.ReadOnly {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &readOnly{next: next} })
	}
}
