package kube

import (
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// OnRequest is told of each request that was sent: its verb in the words of
// RBAC, its resource ("nodes", "pods", "/readyz"), and the HTTP status code of
// the answer, 0 when there was none.
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

// WrappedRoundTripper lets client-go reach the connections below.
func (t *countingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// describe reads verb and resource from a request for objects.
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

// inVersion returns the part of a path that follows the version of an API.
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
