package nodereport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// clockTimeout bounds the question for the API server's time.
const clockTimeout = 5 * time.Second

// serverTime asks the API server at an address for its time. It needs no permission: also
// the answer that there is none has a time. The server is known by the cluster's CA, which
// is among the host's files.
func (h Host) serverTime(ctx context.Context, url string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	ca, err := os.ReadFile(filepath.Join(h.Root, "/etc/kubernetes/pki/ca.crt"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the cluster's CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for its time: %w", err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for its time: %w", err)
	}
	_ = answer.Body.Close() // there is none
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the API server's time: %w", err)
	}
	return date.Add(500 * time.Millisecond), nil // whole seconds are told, on average half a one late
}

// ThisHost is the host of the pod that this process runs in, whose files are below root.
func ThisHost(root string) Host {
	h := Host{Root: root, Kernel: Kernel}
	h.ServerTime = func(ctx context.Context) (time.Time, error) {
		address := os.Getenv("KUBERNETES_SERVICE_HOST")
		if address == "" {
			return time.Time{}, errors.New("the address of the API server is not known: KUBERNETES_SERVICE_HOST is not set")
		}
		return h.serverTime(ctx, "https://"+net.JoinHostPort(address, cmp.Or(os.Getenv("KUBERNETES_SERVICE_PORT"), "443"))+"/version")
	}
	return h
}
