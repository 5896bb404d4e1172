package certificates

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// Year is the validity of the certificates that EKCO creates.
const Year = 365 * 24 * time.Hour

// Back is the time before now at which the validity of a new certificate begins, because other clocks may be slow.
const Back = 5 * time.Minute

// Renewal has the properties that a new certificate does not copy from the old certificate.
type Renewal struct {
	// Now is the time of the signature. The certificate expires For after Now.
	Now time.Time
	For time.Duration
	// From is the start of the validity, if that must be earlier than [Back] before Now. Otherwise it is zero.
	From time.Time
	// NewKey creates the new key; nil is [NewKey].
	NewKey func(KeyKind) (crypto.Signer, error)
}

func (r Renewal) newKey(kind KeyKind) (crypto.Signer, error) {
	if r.NewKey != nil {
		return r.NewKey(kind)
	}
	return NewKey(kind)
}

// begins returns the start of the validity, at the latest [Back] before Now.
func (r Renewal) begins() time.Time {
	if begins := r.Now.Add(-Back); r.From.IsZero() || begins.Before(r.From) {
		return begins
	}
	return r.From
}

// Renew creates a certificate with a new key and a new validity. Subject, names, usages and kind of key are those of
// the old certificate.
func Renew(old *x509.Certificate, ca Authority, r Renewal) (*x509.Certificate, crypto.Signer, error) {
	template, err := r.like(old)
	if err != nil {
		return nil, nil, err
	}
	key, err := r.newKey(KindOf(old.PublicKey))
	if err != nil {
		return nil, nil, fmt.Errorf("renew %s: %w", Called(old), err)
	}
	certificate, err := sign(template, ca.Certificate, key.Public(), ca.Key)
	return certificate, key, err
}

// RenewCA creates a self-signed CA like the old CA, with a new key.
func RenewCA(old *x509.Certificate, r Renewal) (Authority, error) {
	template, err := r.like(old)
	if err != nil {
		return Authority{}, err
	}
	key, err := r.newKey(KindOf(old.PublicKey))
	if err != nil {
		return Authority{}, fmt.Errorf("renew %s: %w", Called(old), err)
	}
	certificate, err := sign(template, template, key.Public(), key)
	return Authority{Certificate: certificate, Key: key}, err
}

// like returns a template with the properties of the old certificate that stay. It drops extensions that Go does not
// know, and extensions about the issuer, because the issuer may change.
func (r Renewal) like(old *x509.Certificate) (*x509.Certificate, error) {
	serial, err := newSerial()
	return &x509.Certificate{
		SerialNumber: serial, RawSubject: old.RawSubject, Subject: old.Subject,
		NotBefore: r.begins(), NotAfter: r.Now.Add(r.For),
		KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage, UnknownExtKeyUsage: old.UnknownExtKeyUsage,
		DNSNames: old.DNSNames, IPAddresses: old.IPAddresses, EmailAddresses: old.EmailAddresses, URIs: old.URIs,
		BasicConstraintsValid: old.BasicConstraintsValid, IsCA: old.IsCA,
		MaxPathLen: old.MaxPathLen, MaxPathLenZero: old.MaxPathLenZero,
	}, err
}

func newSerial() (*big.Int, error) {
	// A serial number must be positive and have at most 20 bytes. 127 random bits are enough.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

func sign(template, by *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, by, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", Called(template), err)
	}
	return x509.ParseCertificate(der)
}

// SelfSigned creates a chain like kURL's chain for its proxy: a server certificate and the CA that signed it. It
// discards the CA's key. It copies the alternative names of the old certificate. Both common names contain host and the
// time.
func SelfSigned(old *x509.Certificate, host string, r Renewal) (chain []*x509.Certificate, key crypto.Signer, err error) {
	caTemplate, err := r.like(&x509.Certificate{
		Subject:  pkix.Name{CommonName: fmt.Sprintf("%s-ca@%d", host, r.Now.Unix())},
		KeyUsage: x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	})
	if err != nil {
		return nil, nil, err
	}
	caKey, err := r.newKey(RSA2048)
	if err != nil {
		return nil, nil, err
	}
	ca, err := sign(caTemplate, caTemplate, caKey.Public(), caKey)
	if err != nil {
		return nil, nil, err
	}
	leaf, key, err := Renew(&x509.Certificate{
		Subject: pkix.Name{CommonName: fmt.Sprintf("%s@%d", host, r.Now.Unix())}, PublicKey: old.PublicKey,
		KeyUsage: x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              old.DNSNames, IPAddresses: old.IPAddresses, EmailAddresses: old.EmailAddresses, URIs: old.URIs,
	}, Authority{Certificate: ca, Key: caKey}, r)
	return []*x509.Certificate{leaf, ca}, key, err
}
