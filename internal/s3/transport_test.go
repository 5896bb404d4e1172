package s3

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Nobody listens there: a port that was free a moment ago may be another's now.
const (
	closed     = "127.0.0.1:1"
	alsoClosed = "127.0.0.2:1"
)

func TestOneOfSeveralAddressesThatDoesNotAnswerIsPassedOver(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	there := listener.Addr().String()
	transport := newTransport(time.Minute, []string{closed, there})
	for range 2 { // the second time it begins with the one that answered
		conn, err := transport.DialContext(t.Context(), "tcp", closed)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.RemoteAddr().String(); got != there {
			t.Errorf("connected to %s, want %s", got, there)
		}
		conn.Close()
	}
	if conn, err := newTransport(time.Minute, []string{closed, alsoClosed}).DialContext(t.Context(), "tcp", closed); err == nil {
		conn.Close()
		t.Error("connected to nobody")
	}
	if conn, err := transport.DialContext(t.Context(), "tcp", alsoClosed); err == nil {
		conn.Close()
		t.Error("another store is none of them")
	}
}

func TestWhatIsSentGoesNowhereElse(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	client, err := NewClient(Endpoint{Address: strings.TrimPrefix(redirecting.URL, "http://")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.request(t.Context(), http.MethodPut, admin+"/import-iam", "", []byte("users with their secrets")); err == nil {
		t.Error("a redirect is taken for an answer")
	}
	if health, err := client.Health(t.Context(), false, time.Minute); err != nil || health.Writable {
		t.Errorf("a redirect is taken for health: %v, %+v", err, health)
	}
	if _, err := client.Buckets(t.Context()); err == nil {
		t.Error("a redirect is taken for a list of buckets")
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("another server was sent %d requests", n)
	}
	if client.transport.Proxy != nil {
		t.Error("a proxy of the environment sees all")
	}
}

// TestWhatChangesAVersionIsAskedForOnce: who tries again must ask first where clients write by now.
func TestWhatChangesAVersionIsAskedForOnce(t *testing.T) {
	var asked atomic.Int32
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // where the bucket is
			_, _ = w.Write([]byte("<LocationConstraint/>"))
			return
		}
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	client, err := NewClient(Endpoint{Address: strings.TrimPrefix(busy.URL, "http://")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	v := Version{Key: "key", ID: NullVersion, Attributes: &Attributes{Tags: map[string]string{"a": "b"}, LegalHold: true}}
	for name, change := range map[string]func() error{
		"remove":   func() error { return client.Remove(t.Context(), "bucket", v) },
		"mark":     func() error { return client.PutMarker(t.Context(), "bucket", v) },
		"annotate": func() error { return client.Annotate(t.Context(), "bucket", v, Attributes{Tags: v.Attributes.Tags}) },
	} {
		if asked.Store(0); change() == nil || asked.Load() != 1 {
			t.Errorf("%s: asked %d times", name, asked.Load())
		}
	}
}
