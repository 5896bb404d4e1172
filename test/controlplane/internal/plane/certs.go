package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

const certLifetime = 365 * 24 * time.Hour

// authority signs every certificate of one control plane.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pair is a certificate and its key, both PEM.
type pair struct {
	cert, key []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the key of the certificate authority: %w", err)
	}
	template := template(pkix.Name{CommonName: "kubernetes"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate authority back: %w", err)
	}
	return &authority{cert: cert, key: key}, nil
}

// server issues a certificate for serving on loopback and under the names that Kubernetes clients in a cluster use.
func (a *authority) server(name string, ips ...net.IP) (pair, error) {
	t := template(pkix.Name{CommonName: name})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	t.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	t.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, ips...)
	return a.issue(t)
}

// client issues a certificate for a Kubernetes user in groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	t := template(pkix.Name{CommonName: user, Organization: groups})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(t)
}

func (a *authority) issue(t *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("cannot make the key of %s: %w", t.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("cannot sign the certificate of %s: %w", t.Subject.CommonName, err)
	}
	keyPEM, err := privatePEM(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: certPEM(der), key: keyPEM}, nil
}

func (a *authority) pair() (pair, error) {
	key, err := privatePEM(a.key)
	return pair{cert: certPEM(a.cert.Raw), key: key}, err
}

// template returns a certificate that is valid from one hour ago, so that small clock steps do no harm.
func template(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails since Go 1.24
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func publicPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot encode a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// writePair writes NAME.crt and NAME.key.
func (d Dir) writePair(name string, p pair) error {
	if err := d.writeSecret(name+".crt", p.cert); err != nil {
		return err
	}
	return d.writeSecret(name+".key", p.key)
}

func (d Dir) writeSecret(name string, data []byte) error {
	if err := os.WriteFile(d.pki(name), data, 0o600); err != nil {
		return fmt.Errorf("cannot write a certificate or key: %w", err)
	}
	return nil
}
