package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

const (
	// Host is the name by which API servers call the webhooks: that of Service kurl/ekco.
	Host = "ekco.kurl.svc"
	// Validity is the time for which a certificate is valid.
	Validity = 90 * 24 * time.Hour
	// slowClock is how much the clock of an API server may be behind.
	slowClock = 24 * time.Hour
)

// Certificate is the certificate of the server.
type Certificate struct {
	// Chain and Key are PEM files: the server's certificate and the CA that signed it, and the key of the server's
	// certificate. Nobody has the key of the CA.
	Chain, Key []byte
	// CA is a PEM file with the CA, which API servers trust.
	CA []byte
	// Fingerprint is the SHA-256 of the CA. It identifies the certificate, because each has a CA of its own.
	Fingerprint         string
	NotBefore, NotAfter time.Time

	pair tls.Certificate
}

// TLS returns the certificate as a TLS server needs it.
func (c *Certificate) TLS() *tls.Certificate { return &c.pair }

// NewCertificate creates a certificate that is valid for [Validity] from now.
func NewCertificate(now time.Time) (*Certificate, error) {
	chain, key, err := certificates.SelfSigned(
		&x509.Certificate{PublicKey: &ecdsa.PublicKey{Curve: elliptic.P256()}, DNSNames: []string{Host}}, Host,
		certificates.Renewal{Now: now, For: Validity, From: now.Add(-slowClock)},
	)
	if err != nil {
		return nil, fmt.Errorf("create the certificate of the webhooks: %w", err)
	}
	encodedKey, err := certificates.EncodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate of the webhooks: %w", err)
	}
	return ReadCertificate("the new certificate of the webhooks", certificates.EncodeChain(chain...), encodedKey)
}

// ReadCertificate reads a certificate that [NewCertificate] returned. It returns an error for a certificate that would
// not work: the key does not match, the certificate is not for [Host], or the CA did not sign it. It does not compare the
// validity with the present time. The name is for errors.
func ReadCertificate(name string, chain, key []byte) (*Certificate, error) {
	parsed, signer, err := certificates.Pair(certificates.File{Name: name + ", certificate", Content: chain}, certificates.File{Name: name + ", key", Content: key})
	if err != nil {
		return nil, err
	}
	if len(parsed) != 2 {
		return nil, fmt.Errorf("read %s: it has %d certificates, want the server's and its CA's", name, len(parsed))
	}
	leaf, ca := parsed[0], parsed[1]
	trusted := x509.NewCertPool()
	trusted.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: Host, Roots: trusted, CurrentTime: leaf.NotBefore}); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &Certificate{
		Chain: chain, Key: key, CA: certificates.EncodeChain(ca), Fingerprint: certificates.Fingerprint(ca),
		NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
		pair: tls.Certificate{Certificate: [][]byte{leaf.Raw, ca.Raw}, PrivateKey: signer, Leaf: leaf},
	}, nil
}
