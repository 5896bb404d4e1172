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

// Back is how far a new certificate's validity begins in the past, for clocks that are behind.
const Back = 5 * time.Minute

// Renewal has what the new certificate does not copy from the old one.
type Renewal struct {
	// Now is the time of the signature, For how long the certificate is valid from then on.
	Now time.Time
	For time.Duration
	// From is when the validity begins, if that is earlier than [Back] before Now; zero if it is not.
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

// begins returns the start of the validity, which is never later than now.
func (r Renewal) begins() time.Time {
	if begins := r.Now.Add(-Back); r.From.IsZero() || begins.Before(r.From) {
		return begins
	}
	return r.From
}

// Renew creates a certificate with a new key and a new validity. It has the subject, names, usages and kind of key
// of the old one.
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

// RenewCA creates a self-signed CA like the old one, with a new key.
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

// like returns what is kept of the old certificate. Extensions that Go does not know are dropped, and so are those
// about the issuer, which may be another one.
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
	// 127 bits: a serial number is positive and has at most 20 bytes.
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

// SelfSigned creates a pair like the one that kURL generates for its proxy: a server certificate and the CA that
// signed it. The CA's key is discarded. The names are those of the old certificate. Both common names are host and
// the time.
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
