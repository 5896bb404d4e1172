// Package certificatestest makes certificates for tests: a CA, and certificates like those of kURL's registry and
// proxy, and of Contour and Envoy. All tests share a few ECDSA keys, because it takes long to create RSA keys.
package certificatestest

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// pool has the keys that the tests share. The keys protect nothing.
var pool = sync.OnceValue(func() (keys []crypto.Signer) {
	for range 16 {
		key, err := certificates.NewKey(certificates.ECDSAP256)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

// Keys returns the keys of a pool in turn. The zero value is ready for use. It is safe for concurrent use.
type Keys struct {
	mu   sync.Mutex
	next int
}

// New returns a key that differs from the last fifteen keys.
func (k *Keys) New(certificates.KeyKind) (crypto.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	return pool()[k.next%len(pool())], nil
}

// CA returns a CA with that name, which expires at until.
func CA(t testing.TB, name string, until time.Time) certificates.Authority {
	t.Helper()
	return authority(t, name, until, pool()[0])
}

// OtherCA is [CA] with another key.
func OtherCA(t testing.TB, name string, until time.Time) certificates.Authority {
	t.Helper()
	return authority(t, name, until, pool()[1])
}

func authority(t testing.TB, name string, until time.Time, key crypto.Signer) certificates.Authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-10 * certificates.Year), NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, IsCA: true,
	}
	return certificates.Authority{Certificate: sign(t, template, template, key, key), Key: key}
}

// Resigned returns a CA with that name and with the key of ca, which expires at until.
func Resigned(t testing.TB, ca certificates.Authority, name string, until time.Time) *x509.Certificate {
	t.Helper()
	template := *ca.Certificate
	template.RawSubject, template.Subject, template.NotAfter = nil, pkix.Name{CommonName: name}, until
	return sign(t, &template, &template, ca.Key, ca.Key)
}

// Pair returns a certificate with that name for servers and clients, and its key. It is valid for the year before
// until.
func Pair(t testing.TB, ca certificates.Authority, name string, until time.Time, names ...string) (certificate, key []byte) {
	t.Helper()
	return pair(t, ca, name, until, names, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// Serving is [Pair] with a certificate for servers only, like the one of kURL's registry.
func Serving(t testing.TB, ca certificates.Authority, name string, until time.Time, names ...string) (certificate, key []byte) {
	t.Helper()
	return pair(t, ca, name, until, names, x509.ExtKeyUsageServerAuth)
}

func pair(t testing.TB, ca certificates.Authority, name string, until time.Time, names []string, usages ...x509.ExtKeyUsage) (certificate, key []byte) {
	t.Helper()
	signer := pool()[1]
	life := certificates.Year
	if time.Until(until) > 2*life {
		life = 10 * certificates.Year
	}
	made := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: names, NotBefore: until.Add(-life), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: usages, BasicConstraintsValid: true,
	}, ca.Certificate, signer, ca.Key)
	encoded, err := certificates.EncodeKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	return certificates.EncodeChain(made), encoded
}

func sign(t testing.TB, template, by *x509.Certificate, key, ca crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), ca)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// Secret returns a Secret with the data.
func Secret(data map[string][]byte) string {
	encoded := map[string]string{}
	for key, content := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(content)
	}
	content, err := json.Marshal(map[string]any{"kind": "Secret", "type": "Opaque", "metadata": map[string]any{"labels": map[string]string{"kept": "yes"}}, "data": encoded})
	if err != nil {
		panic(err)
	}
	return string(content)
}

// Registry returns the Secret of kURL's registry.
func Registry(t testing.TB, ca certificates.Authority, until time.Time) string {
	t.Helper()
	certificate, key := Serving(t, ca, "registry.kurl.svc.cluster.local", until, "registry", "registry.kurl")
	return Secret(map[string][]byte{"registry.crt": certificate, "registry.key": key, "other": []byte("kept")})
}

// KurlProxy returns the Secret of kURL's proxy. With an empty name it has the certificate that kURL generates,
// otherwise a customer's certificate with that name.
func KurlProxy(t testing.TB, until time.Time, name string) string {
	t.Helper()
	issuer := name + "'s CA"
	if name == "" {
		name, issuer = certificates.KurlProxyHost, certificates.KurlProxyHost
	}
	certificate, key := Pair(t, CA(t, issuer, until), name, until, name, "10.0.0.1")
	return Secret(map[string][]byte{"tls.crt": certificate, "tls.key": key})
}

// Contour returns the Secrets of Contour and of Envoy.
func Contour(t testing.TB, until time.Time) (contour, envoy string) {
	t.Helper()
	ca := CA(t, "Project Contour", until)
	secret := func(name string) string {
		certificate, key := Pair(t, ca, name, until, name, fmt.Sprintf("%s.projectcontour.svc", name))
		return Secret(map[string][]byte{"ca.crt": certificates.EncodeChain(ca.Certificate), "tls.crt": certificate, "tls.key": key})
	}
	return secret("contour"), secret("envoy")
}
