package primary

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ServerTime asks the API server at an address for its time. It does not verify the server's certificate, which may
// have expired. The worst that a forged server can do is to prevent the renewal.
func ServerTime(ctx context.Context, server string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, strings.TrimRight(server, "/")+"/version", http.NoBody)
	if err != nil { // it quotes the URL, which may contain a password
		return time.Time{}, errors.New("ask the API server for its time: the server in a kubeconfig is no URL")
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // see above
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for its time: %w", err)
	}
	_ = answer.Body.Close() // an answer to HEAD has no body
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the API server's time: %w", err)
	}
	return date, nil
}
