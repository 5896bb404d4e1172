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

// Authority is a CA that can sign.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
	// Others are the other CAs in the file. While the CA is being replaced, the file has the old and the new one.
	Others []*x509.Certificate
}

// SignedByOther reports whether another CA in the file has signed the certificate.
func (a Authority) SignedByOther(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(a.Others, func(other *x509.Certificate) bool { return SignedBy(certificate, other) })
}

// NewAuthority reads a CA and its key, and checks that it may sign at that time. If the file has several CAs, it
// returns the one that the key belongs to; of several with that key, the one that is valid longest.
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
		if Matches(one, certificate, signer, key) != nil || ca != nil && one.NotAfter.Before(ca.NotAfter) {
			others = append(others, one)
			continue
		}
		if ca != nil {
			others = append(others, ca)
		}
		ca = one
	}
	if ca == nil {
		return Authority{}, Matches(bundle[0], certificate, signer, key)
	}
	switch {
	case !ca.IsCA, ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCertSign == 0:
		return Authority{}, fmt.Errorf("%s (%s) is not a CA", certificate.Name, Called(ca))
	case at.After(ca.NotAfter):
		return Authority{}, fmt.Errorf("the CA %s (%s) expired at %s; nothing that it signs is valid", certificate.Name, Called(ca), stamp(ca.NotAfter))
	case at.Before(ca.NotBefore):
		return Authority{}, fmt.Errorf("the CA %s (%s) is not valid before %s; check the clock", certificate.Name, Called(ca), stamp(ca.NotBefore))
	}
	return Authority{Certificate: ca, Key: signer, Others: others}, nil
}

// ReadAuthority reads NAME.crt and NAME.key in the directory, as kubeadm calls them.
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

// SignedBy reports whether a CA has signed the certificate, and is named in it.
func SignedBy(certificate, ca *x509.Certificate) bool {
	return bytes.Equal(certificate.RawIssuer, ca.RawSubject) && certificate.CheckSignatureFrom(ca) == nil
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
