package certificates

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// ErrExternalCA is the error if the key of a CA is not on the host.
var ErrExternalCA = errors.New("the CA is external: its key is not on this host, so EKCO cannot sign; create the certificate where the key is")

// Authority is a CA with its key, so that EKCO can sign certificates.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
	// Others are the other CAs in the file. While the CA is being replaced, the file has the old and the new CA.
	Others []*x509.Certificate
}

// SignedByOther reports whether another CA in the file has signed the certificate.
func (a Authority) SignedByOther(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(a.Others, func(other *x509.Certificate) bool { return SignedBy(certificate, other) })
}

// NewAuthority reads a CA and its key, and checks that the CA may sign at the time. If the file has several CAs, it
// returns the CA with this key, and among several CAs with this key the CA that expires last. See [Authority.For].
func NewAuthority(certificate, key File, at time.Time) (Authority, error) {
	bundle, err := certificate.Bundle()
	if err != nil {
		return Authority{}, err
	}
	signer, err := key.Key()
	if err != nil {
		return Authority{}, err
	}
	var ca *x509.Certificate
	var others []*x509.Certificate
	for _, one := range bundle {
		if CheckKey(one, certificate, signer, key) != nil || ca != nil && one.NotAfter.Before(ca.NotAfter) {
			others = append(others, one)
			continue
		}
		if ca != nil {
			others = append(others, ca)
		}
		ca = one
	}
	if ca == nil {
		return Authority{}, CheckKey(bundle[0], certificate, signer, key)
	}
	if err := maySign(ca, certificate.Name, at); err != nil {
		return Authority{}, err
	}
	return Authority{Certificate: ca, Key: signer, Others: others}, nil
}

// maySign returns an error unless the certificate is a CA that may sign at the time.
func maySign(ca *x509.Certificate, name string, at time.Time) error {
	switch {
	case !ca.IsCA, ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCertSign == 0:
		return fmt.Errorf("%s (%s) is not a CA", name, Called(ca))
	case at.After(ca.NotAfter):
		return fmt.Errorf("the CA %s (%s) expired at %s; nothing that it signs is valid", name, Called(ca), stamp(ca.NotAfter))
	case at.Before(ca.NotBefore):
		return fmt.Errorf("the CA %s (%s) is not valid before %s; check the clock", name, Called(ca), stamp(ca.NotBefore))
	}
	return nil
}

// For returns the authority that should sign a renewal of the certificate. If another CA with the same key has signed
// the certificate and may sign at the time, For returns that CA, because clients may not trust a new CA yet.
func (a Authority) For(certificate *x509.Certificate, at time.Time) Authority {
	if SignedBy(certificate, a.Certificate) {
		return a
	}
	for i, other := range a.Others {
		if SignedBy(certificate, other) && CheckKey(other, File{}, a.Key, File{}) == nil && maySign(other, "", at) == nil {
			a.Others = slices.Clone(a.Others)
			a.Certificate, a.Others[i] = other, a.Certificate
			return a
		}
	}
	return a
}

// ReadAuthority reads a CA from NAME.crt and NAME.key in the directory, like kubeadm.
func ReadAuthority(dir, name string, at time.Time) (Authority, error) {
	certificate, err := ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return Authority{}, err
	}
	key, err := ReadFile(filepath.Join(dir, name+".key"))
	if errors.Is(err, fs.ErrNotExist) {
		return Authority{}, fmt.Errorf("read %s: %w", key.Name, ErrExternalCA)
	}
	if err != nil {
		return Authority{}, err
	}
	return NewAuthority(certificate, key, at)
}

// SignedBy reports whether the certificate names the CA as its issuer and the CA has signed it.
func SignedBy(certificate, ca *x509.Certificate) bool {
	return bytes.Equal(certificate.RawIssuer, ca.RawSubject) && certificate.CheckSignatureFrom(ca) == nil
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
