package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// Files of kubeadm's certificate directory that a client of etcd needs.
const (
	caFile   = "etcd/ca.crt"
	certFile = "etcd/healthcheck-client.crt"
	keyFile  = "etcd/healthcheck-client.key"
)

// loadTLS reads the certificates. Each call needs it, because other programs renew the files while EKCO runs.
func loadTLS(certificatesDir string) (*tls.Config, error) {
	read := func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(certificatesDir, name))
		if err != nil {
			return nil, fmt.Errorf("%w: %w; check certificates_dir and that EKCO runs on a primary", ErrCertificates, err)
		}
		return data, nil
	}
	ca, err := read(caFile)
	if err != nil {
		return nil, err
	}
	cert, err := read(certFile)
	if err != nil {
		return nil, err
	}
	key, err := read(keyFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%w: %s holds no certificate in PEM form", ErrCertificates, filepath.Join(certificatesDir, caFile))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s and %s: %w", ErrCertificates,
			filepath.Join(certificatesDir, certFile), filepath.Join(certificatesDir, keyFile), err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
