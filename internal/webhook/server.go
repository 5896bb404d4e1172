package webhook

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/replicatedhq/ekco/internal/serving"
)

// These limit the connections. API servers call webhooks with HTTP/1.1, so that each request under way needs a connection,
// and an API server handles up to 600 requests at a time (its flags --max-requests-inflight and
// --max-mutating-requests-inflight).
const (
	maxConnections           = 2048
	maxConnectionsPerAddress = 640
)

// Serve serves handler with TLS until ctx ends, and closes the listener. It calls certificate for each new connection, so
// that a new certificate takes effect at once.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, certificate func() (*tls.Certificate, error), log *slog.Logger) error {
	limited := serving.Limit(listener, maxConnections, maxConnectionsPerAddress)
	server := &http.Server{
		Handler:           handler,
		ConnState:         limited.Follow,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		// API servers close idle connections after 90 s. If EKCO closed them first, a request could get lost.
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	encrypted := tls.NewListener(limited, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return certificate()
		},
	})
	return serving.Until(ctx, server, encrypted)
}
