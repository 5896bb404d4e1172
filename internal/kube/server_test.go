package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/sim/memorynet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers HTTP as an API server does, in protobuf, with what the test
// says.
type server struct {
	*httptest.Server
	t         *testing.T
	transport *http.Transport
	codecs    serializer.CodecFactory
	encode    runtime.Encoder
	// answer holds what to answer to "GET /path".
	answer map[string]any

	mu       sync.Mutex
	requests []request
}

// request is one that was received.
type request struct {
	line, query, contentType, accept string
	body                             runtime.Object
}

func newServer(t *testing.T, answer map[string]any) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	s := &server{
		t: t, codecs: codecs, answer: answer,
		encode: codecs.EncoderForVersion(protobuf.NewSerializer(scheme, scheme), corev1.SchemeGroupVersion),
	}
	s.Server, s.transport = memorynet.Serve(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := r.Method + " " + r.URL.Path
	s.record(line, r)
	switch answer := s.answer[line].(type) {
	case func(http.ResponseWriter, *http.Request):
		answer(w, r)
	case *apierrors.StatusError:
		s.write(w, int(answer.ErrStatus.Code), &answer.ErrStatus)
	case runtime.Object:
		s.write(w, http.StatusOK, answer)
	case string:
		_, _ = io.WriteString(w, answer)
	case nil:
		s.t.Errorf("unexpected request %s", line)
		w.WriteHeader(http.StatusTeapot)
	}
}

func (s *server) record(line string, r *http.Request) {
	got := request{line: line, query: r.URL.RawQuery, contentType: r.Header.Get("Content-Type"), accept: r.Header.Get("Accept")}
	if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
		object, _, err := s.codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			s.t.Errorf("%s: cannot read the body: %v", line, err)
		}
		got.body = object
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, got)
}

func (s *server) write(w http.ResponseWriter, code int, object runtime.Object) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.WriteHeader(code)
	if err := s.encode.Encode(object, w); err != nil {
		s.t.Errorf("cannot encode %T: %v", object, err)
	}
}

// last returns the last request.
func (s *server) last() request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		s.t.Fatal("nothing was asked")
	}
	return s.requests[len(s.requests)-1]
}

func (s *server) client(options Options) *Client { return s.bound(Terms{}, options) }

func (s *server) bound(terms Terms, options Options) *Client {
	s.t.Helper()
	s.t.Cleanup(s.transport.CloseIdleConnections)
	config := &rest.Config{Host: s.URL, Transport: s.transport}
	terms.Bind(config)
	c, err := NewClient(config, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// hang does not answer until the client has gone away.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// streaming sends events and then keeps the stream open.
func streaming(objects ...runtime.Object) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;stream=watch")
		for _, object := range objects {
			raw, _ := json.Marshal(object)
			_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}})
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}
