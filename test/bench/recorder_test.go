package bench

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// recorder is a proxy in front of the API server that notes when each request
// to delete a pod arrives.
type recorder struct {
	URL string
	// CA is the certificate to trust, as PEM.
	CA []byte

	mu sync.Mutex
	// deleted is the arrival of the first DELETE, by "namespace/name".
	deleted map[string]time.Time
}

func newRecorder(b *testing.B, config *rest.Config) *recorder {
	b.Helper()
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, CAFile: config.CAFile}})
	if err != nil {
		b.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.FlushInterval = -1
	r := &recorder{deleted: make(map[string]time.Time)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.note(request)
		proxy.ServeHTTP(w, request)
	}))
	// As the API server itself; client-go sends a token only over TLS.
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	r.URL = server.URL
	r.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return r
}

func (r *recorder) note(request *http.Request) {
	arrived := time.Now()
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if request.Method != http.MethodDelete || len(parts) != 6 || parts[4] != "pods" {
		return
	}
	pod := parts[3] + "/" + parts[5]
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.deleted[pod]; !again {
		r.deleted[pod] = arrived
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.deleted)
}
