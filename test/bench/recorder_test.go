package bench

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/test/apiproxy"
)

// recorder is a proxy in front of the API server that notes when each request
// to delete a pod arrives.
type recorder struct {
	*apiproxy.Proxy

	mu sync.Mutex
	// deleted is the arrival of the first DELETE, by "namespace/name".
	deleted map[string]time.Time
}

func newRecorder(b *testing.B, config *rest.Config) *recorder {
	b.Helper()
	r := &recorder{deleted: make(map[string]time.Time)}
	r.Proxy = apiproxy.Start(b, config, apiproxy.HTTP2, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			r.note(request)
			next.ServeHTTP(w, request)
		})
	})
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
