package webhook

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newCertificate(t *testing.T, at time.Time) *Certificate {
	t.Helper()
	c, err := NewCertificate(at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACertificateIsForTheServiceAndValidFor90Days(t *testing.T) {
	c := newCertificate(t, now)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.CA) {
		t.Fatalf("the CA is %q", c.CA)
	}
	for at, valid := range map[time.Time]bool{
		now.Add(-slowClock): true, now: true, now.Add(Validity): true,
		now.Add(-slowClock - time.Second): false, now.Add(Validity + time.Second): false,
	} {
		if _, err := c.TLS().Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "ekco.kurl.svc", CurrentTime: at}); (err == nil) != valid {
			t.Errorf("at %s: %v", at, err)
		}
	}
	if !c.NotAfter.Equal(now.Add(Validity)) || !c.NotBefore.Equal(now.Add(-slowClock)) || len(c.Fingerprint) != 64 {
		t.Errorf("it is valid from %s to %s, its fingerprint is %q", c.NotBefore, c.NotAfter, c.Fingerprint)
	}
}

func TestACertificateIsReadAsItWasStored(t *testing.T) {
	c := newCertificate(t, now)
	read, err := ReadCertificate("Secret kurl/ekco-webhook", c.Chain, c.Key)
	if err != nil || read.Fingerprint != c.Fingerprint || string(read.CA) != string(c.CA) {
		t.Errorf("read %+v, %v", read, err)
	}
}

func TestACertificateThatWouldNotWorkIsRefused(t *testing.T) {
	c, other := newCertificate(t, now), newCertificate(t, now)
	leaf, _ := pem.Decode(c.Chain)
	_, otherCA := pem.Decode(other.Chain)
	foreign, key, err := certificates.SelfSigned(&x509.Certificate{PublicKey: c.TLS().Leaf.PublicKey, DNSNames: []string{"other.kurl.svc"}}, "other", certificates.Renewal{Now: now, For: Validity})
	if err != nil {
		t.Fatal(err)
	}
	foreignKey, err := certificates.EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		chain, key []byte
		want       string
	}{
		"empty":                {nil, c.Key, "it is empty"},
		"the key of another":   {c.Chain, other.Key, "key"},
		"without its CA":       {pem.EncodeToMemory(leaf), c.Key, "it has 1 certificates"},
		"the CA of another":    {append(pem.EncodeToMemory(leaf), otherCA...), c.Key, "unknown authority"},
		"for another Service":  {certificates.EncodeChain(foreign...), foreignKey, "ekco.kurl.svc"},
		"no certificate":       {[]byte("nonsense"), c.Key, "no PEM block"},
		"no key":               {c.Chain, c.Chain, "want one private key"},
		"truncated at the end": {c.Chain[:len(c.Chain)-40], c.Key, "PEM"},
	} {
		_, err := ReadCertificate("Secret kurl/ekco-webhook", test.chain, test.key)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "Secret kurl/ekco-webhook") {
			t.Errorf("%s: the error is %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: the error shows a key: %v", name, err)
		}
	}
}
