package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/replicatedhq/ekco/internal/serving"
)

// These limit the connections to the network port: separately those that are idle and those with a running request.
// Behind a NodePort, the kubelet and many clients can have the address of one node.
const (
	maxConnections           = 64
	maxConnectionsPerAddress = 32
)

// Health reports whether EKCO is ready.
type Health interface {
	// Unready returns the reasons why EKCO is not ready, for persons. It returns none if the loop runs, the journal is
	// writable and the caches are synced.
	Unready(ctx context.Context) []string
}

// ServeHTTP serves only /healthz, /readyz and /metrics, until ctx ends. It closes the listener, and returns nil after
// an orderly stop.
//
// /healthz answers 200 with an empty body while the process serves. /readyz answers 200, or 503 with the reasons. The
// reasons are text or, if the request accepts application/json, {"ready": …, "reasons": […]}.
//
// Every client can reach the port, so its connections are limited; see [serving.Limit].
func ServeHTTP(ctx context.Context, listener net.Listener, health Health, metrics prometheus.Gatherer, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", readyz(health, log))
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		Timeout:             20 * time.Second,
	}))
	limited := serving.Limit(listener, maxConnections, maxConnectionsPerAddress)
	server := &http.Server{
		ConnState:         limited.Follow,
		Handler:           http.MaxBytesHandler(mux, 4<<10),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return serving.Until(ctx, server, limited)
}

func readyz(health Health, log *slog.Logger) http.HandlerFunc {
	shared := newSharedHealth(health)
	return func(w http.ResponseWriter, r *http.Request) {
		reasons := shared.Unready(r.Context())
		status := http.StatusOK
		if len(reasons) > 0 {
			status = http.StatusServiceUnavailable
		}
		var body []byte
		if r.Header.Get("Accept") == "application/json" {
			var err error
			body, err = json.Marshal(struct {
				Ready   bool     `json:"ready"`
				Reasons []string `json:"reasons"`
			}{len(reasons) == 0, append([]string{}, reasons...)})
			if err != nil {
				log.Error("cannot encode the answer of /readyz", "error", err)
			}
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			for _, reason := range reasons {
				body = append(body, "not ready: "+reason+"\n"...)
			}
			if len(reasons) == 0 {
				body = []byte("ready\n")
			}
		}
		w.WriteHeader(status)
		if _, err := w.Write(body); err != nil {
			log.Debug("the client closed the connection before the answer", "error", err)
		}
	}
}
