// Package pki issues etcd certificates for tests, in kubeadm's file layout.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority like the one that kubeadm creates for etcd.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New creates an authority.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := template(pkix.Name{CommonName: "etcd-ca"})
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageKeyEncipherment
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert: cert, key: key}, err
}

// WriteServer writes the files for a node's member into a certificates directory: etcd/ca.crt, etcd/server and
// etcd/peer.
func (a *Authority) WriteServer(dir, node string, ip net.IP) error {
	for _, name := range []string{"server", "peer"} {
		t := template(pkix.Name{CommonName: node})
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		t.DNSNames = []string{node, "localhost"}
		t.IPAddresses = []net.IP{ip, net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		if err := a.write(dir, name, t); err != nil {
			return err
		}
	}
	return nil
}

// WriteClient writes the files that EKCO needs: etcd/ca.crt and etcd/healthcheck-client.
func (a *Authority) WriteClient(dir string) error {
	t := template(pkix.Name{CommonName: "kube-etcd-healthcheck-client", Organization: []string{"system:masters"}})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.write(dir, "healthcheck-client", t)
}

func template(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails since Go 1.24
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// write writes etcd/ca.crt, etcd/NAME.crt and etcd/NAME.key.
func (a *Authority) write(dir, name string, t *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "etcd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for file, block := range map[string]*pem.Block{
		"ca.crt":      {Type: "CERTIFICATE", Bytes: a.cert.Raw},
		name + ".crt": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
