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
	"time"
)

// serverTime reads the time of the API server at an address. It needs no permission, because the answer has the time
// even if the server refuses the request. It verifies the server with the cluster's CA from the host's files.
func (h Host) serverTime(ctx context.Context, url string) (time.Time, error) {
	ca, err := h.readFile("/etc/kubernetes/pki/ca.crt")
	if err != nil {
		return time.Time{}, fmt.Errorf("read the cluster's CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	answer, err := head(ctx, url, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if begun, is := validFrom(err); is {
		// By this host's clock, the server's certificate is expired or not valid yet. Accept it, but read only the time.
		answer, err = head(ctx, url, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: func() time.Time { return begun }})
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for its time: %w", err)
	}
	_ = answer.Body.Close() // an answer to HEAD has no body
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the API server's time: %w", err)
	}
	return date.Add(500 * time.Millisecond), nil // the header has whole seconds, on average 0.5 s too early
}

// head requests only the header of an answer.
func head(ctx context.Context, url string, security *tls.Config) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	return transport.RoundTrip(request)
}

// validFrom returns from when a certificate is valid that was refused because it is expired or not valid yet.
func validFrom(err error) (time.Time, bool) {
	var invalid x509.CertificateInvalidError
	var shown *tls.CertificateVerificationError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired || !errors.As(err, &shown) {
		return time.Time{}, false
	}
	return shown.UnverifiedCertificates[0].NotBefore, true
}

// ThisHost is the host of this process's pod, with its files below root.
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
