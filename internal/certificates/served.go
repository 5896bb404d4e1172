package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Served returns the certificate that is served at an address, without verifying it. It also works if the server
// requires a client certificate, because the server sends its certificate first.
func Served(ctx context.Context, address string) (*x509.Certificate, error) {
	var leaf *x509.Certificate
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS12,
		// EKCO sends nothing, and compares the certificate with the expected one.
		InsecureSkipVerify: true, //nolint:gosec // see above
		NextProtos:         []string{"h2", "http/1.1"},
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) > 0 {
				leaf = state.PeerCertificates[0]
			}
			return nil
		},
	}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		err = connection.Close()
	}
	switch {
	case leaf != nil:
		return leaf, nil
	case err == nil:
		err = errors.New("the server sent no certificate")
	}
	return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
}
