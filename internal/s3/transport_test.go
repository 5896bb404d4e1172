package s3

import (
	"errors"
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
	if _, err := client.request(t.Context(), http.MethodPut, adminPath+"/import-iam", "", []byte("users with their secrets")); err == nil {
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
	with := func(attributes Attributes) func() error {
		return func() error {
			return client.Annotate(t.Context(), "bucket", Version{Key: "key", ID: NullVersion, Attributes: &attributes}, *v.Attributes)
		}
	}
	for name, change := range map[string]func() error{
		"remove":   func() error { return client.Remove(t.Context(), "bucket", v) },
		"mark":     func() error { return client.PutMarker(t.Context(), "bucket", v) },
		"annotate": func() error { return client.Annotate(t.Context(), "bucket", v, Attributes{Tags: v.Attributes.Tags}) },
		"tag":      with(Attributes{Tags: map[string]string{"a": "c"}, LegalHold: true}),
		"untag":    with(Attributes{LegalHold: true}),
		"retain":   with(Attributes{Tags: v.Attributes.Tags, LegalHold: true, Retention: &Retention{Mode: "GOVERNANCE", Until: time.Now().Add(time.Hour)}}),
	} {
		if asked.Store(0); change() == nil || asked.Load() != 1 {
			t.Errorf("%s: asked %d times", name, asked.Load())
		}
	}
}

// TestOnlyAVersionWithoutAnIDIsStoredOnCondition: those with ids stay side by side.
func TestOnlyAVersionWithoutAnIDIsStoredOnCondition(t *testing.T) {
	var match, noneMatch atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // where the bucket is
			_, _ = w.Write([]byte("<LocationConstraint/>"))
			return
		}
		match.Store(r.Header.Get("If-Match"))
		noneMatch.Store(r.Header.Get("If-None-Match"))
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = w.Write([]byte("<Error><Code>PreconditionFailed</Code></Error>"))
	}))
	defer server.Close()
	client, err := NewClient(Endpoint{Address: strings.TrimPrefix(server.URL, "http://")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	old := &Version{Key: "key", ETag: "0123"}
	for name, test := range map[string]struct {
		id               string
		old              *Version
		match, noneMatch string
	}{
		"new": {id: NullVersion, noneMatch: "*"}, "old": {id: NullVersion, old: old, match: `"0123"`},
		"new, with an id": {id: "00000001-0000-4000-8000-000000000000"}, "old, with an id": {id: "00000001-0000-4000-8000-000000000000", old: old},
	} {
		v := Version{Key: "key", ID: test.id, ETag: "4567", Size: 1, Attributes: &Attributes{}}
		err := client.Put(t.Context(), "bucket", v, test.old, strings.NewReader("x"), true)
		if !errors.Is(err, ErrExists) || match.Load() != test.match || noneMatch.Load() != test.noneMatch {
			t.Errorf("%s: %v, If-Match %q, If-None-Match %q", name, err, match.Load(), noneMatch.Load())
		}
	}
}

// TestWhatIsSetAsideHasANameOfItsOwn: also versions without an id, and keys that differ only in their end.
func TestWhatIsSetAsideHasANameOfItsOwn(t *testing.T) {
	at, names := time.Now(), map[string]bool{}
	for _, v := range []Version{{Key: "key", Modified: at}, {Key: "key", Modified: at.Add(time.Millisecond)}, {Key: "key/", Modified: at}} {
		v.ID = NullVersion
		name := AsideName("bucket", v)
		if names[name] = true; strings.Contains(name, "//") {
			t.Errorf("%s: no server takes that", name)
		}
	}
	if len(names) != 3 {
		t.Errorf("they are %v", names)
	}
}
