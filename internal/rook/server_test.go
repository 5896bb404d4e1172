package rook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
)

// The heartbeat of client-go's WebSocket ends at its first beat, up to 5 s after
// the connection was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// server is an API server with what the test puts there: JSON by path below
// Rook's namespace. It does what the real one does with preconditions, resource
// versions and patches.
type server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	objects  map[string]string
	failures map[string]int
	requests []string
	bodies   []string
	// before, when set, is called before each write, with the lock held.
	before func(objects map[string]string)
	exec   http.HandlerFunc
}

const (
	deploymentPath = "/apis/apps/v1/namespaces/rook-ceph/deployments"
	clusterPath    = "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/rook-ceph"
	podPath        = "/api/v1/namespaces/rook-ceph/pods"
)

func newServer(t *testing.T, objects map[string]string) (*server, *Client) {
	t.Helper()
	s := &server{t: t, objects: objects, failures: make(map[string]int)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s, s.client(kube.Options{})
}

func (s *server) client(options kube.Options) *Client { return s.bound(kube.Terms{}, options) }

func (s *server) bound(terms kube.Terms, options kube.Options) *Client {
	s.t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	s.t.Cleanup(transport.CloseIdleConnections)
	config := &rest.Config{Host: s.URL, Transport: transport}
	terms.Bind(config)
	client, err := NewClient(config, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.exec != nil && strings.HasSuffix(r.URL.Path, "/exec") {
		s.exec(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Query().Has("resourceVersion") {
		s.t.Errorf("%s %s may be answered from a cache", r.Method, r.URL)
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.bodies = append(s.bodies, string(body))
	if code := s.failures[r.Method+" "+r.URL.Path]; code != 0 {
		refuse(w, code, "told so")
		return
	}
	if r.Method != http.MethodGet && s.before != nil {
		s.before(s.objects)
	}
	path := r.URL.Path
	if labels := r.URL.Query().Get("labelSelector"); labels != "" {
		path += "?" + labels
	}
	object, ok := s.objects[path]
	if !ok {
		refuse(w, http.StatusNotFound, "not found")
		return
	}
	s.answer(w, r, path, object, body)
}

// answer expects mu to be held.
func (s *server) answer(w http.ResponseWriter, r *http.Request, path, object string, body []byte) {
	switch r.Method {
	case http.MethodPut:
		if field(object, "resourceVersion") != field(string(body), "resourceVersion") {
			refuse(w, http.StatusConflict, "the object has been modified")
			return
		}
		s.objects[path], object = string(body), string(body)
	case http.MethodDelete:
		var options struct{ Preconditions struct{ UID string } }
		if err := json.Unmarshal(body, &options); err != nil || options.Preconditions.UID != field(object, "uid") {
			refuse(w, http.StatusConflict, "precondition failed")
			return
		}
		delete(s.objects, path)
	case http.MethodPatch:
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			s.t.Errorf("patch %s: %v", body, err)
		}
		patched, err := patch.Apply([]byte(object))
		if err != nil {
			refuse(w, http.StatusUnprocessableEntity, err.Error())
			return
		}
		s.objects[path], object = string(patched), string(patched)
	}
	if r.Method == http.MethodPut && r.Header.Get("Content-Type") != "application/json" ||
		r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/json-patch+json" {
		s.t.Errorf("%s with content type %q", r.Method, r.Header.Get("Content-Type"))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, object)
}

// field returns a field of an object's metadata.
func field(object, name string) string {
	var read struct{ Metadata map[string]any }
	_ = json.Unmarshal([]byte(object), &read)
	return fmt.Sprint(read.Metadata[name])
}

var reasons = map[int]string{
	http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden", http.StatusConflict: "Conflict",
	http.StatusUnprocessableEntity: "Invalid", http.StatusInternalServerError: "InternalError",
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"message": message, "reason": reasons[code], "code": code,
	})
}

func (s *server) writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var writes []string
	for _, request := range s.requests {
		if !strings.HasPrefix(request, "GET ") {
			writes = append(writes, request)
		}
	}
	return writes
}

func (s *server) object(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path]
}
