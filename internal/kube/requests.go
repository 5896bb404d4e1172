package kube

import (
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// OnRequest is called for each request that was sent. It gets the RBAC verb, the resource ("nodes", "pods",
// "/readyz"), and the HTTP status code of the answer, or 0 if there was no answer.
type OnRequest func(verb, resource string, code int)

func (f OnRequest) wrap(next http.RoundTripper) http.RoundTripper {
	return &countingTransport{next: next, onRequest: f}
}

type countingTransport struct {
	next      http.RoundTripper
	onRequest OnRequest
}

var _ utilnet.RoundTripperWrapper = (*countingTransport)(nil)

// RoundTrip sends the request and reports it.
func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	code := 0
	if err == nil {
		code = response.StatusCode
	}
	verb, resource := describe(request)
	t.onRequest(verb, resource, code)
	return response, err
}

// WrappedRoundTripper gives client-go the inner transport.
func (t *countingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// describe returns verb and resource of a request for objects.
func describe(request *http.Request) (verb, resource string) {
	rest, ok := inVersion(request.URL.Path)
	if !ok {
		return strings.ToLower(request.Method), request.URL.Path
	}
	parts := strings.Split(rest, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	named := len(parts) > 1
	switch request.Method {
	case http.MethodGet:
		switch {
		case request.URL.Query().Get("watch") != "":
			return "watch", parts[0]
		case named:
			return "get", parts[0]
		}
		return "list", parts[0]
	case http.MethodPost:
		return "create", parts[0]
	case http.MethodPut:
		return "update", parts[0]
	}
	return strings.ToLower(request.Method), parts[0]
}

// inVersion returns the part of a path after the API version.
func inVersion(path string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "/api/v1/"); ok {
		return rest, true
	}
	parts := strings.SplitN(path, "/", 5)
	if len(parts) == 5 && parts[1] == "apis" {
		return parts[4], true
	}
	return "", false
}
