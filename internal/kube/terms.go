package kube

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Terms apply to all requests to the API server. They are part of the configuration from [Connect], so they apply to
// every client with this configuration, in any package and for any protocol.
type Terms struct {
	// ReadOnly refuses every change with ErrReadOnly. A program in a pod counts as a change unless its context is a
	// [ReadsOnly].
	ReadOnly bool
	// Unanswered, if set, is called for each request that the API server did not answer, except for [Unreported]
	// requests. The error wraps ErrUnavailable. Unanswered must not block.
	Unanswered func(error)
	// OnRequest, if set, is called for each request that was sent. It must not block.
	OnRequest OnRequest
}

// Bind applies the terms to every client that is made from config.
func (t Terms) Bind(config *rest.Config) {
	if t.OnRequest != nil {
		config.Wrap(t.OnRequest.wrap)
	}
	if t.Unanswered != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &reporting{next: next, report: t.Unanswered} })
	}
	// This must be the outermost transport: a refused request must be neither counted nor reported.
	if t.ReadOnly {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &readOnly{next: next} })
	}
}
