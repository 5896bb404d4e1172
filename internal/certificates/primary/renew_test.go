package primary_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
)

// TestWhatWasNotWrittenAsItWasMadeIsNotUsed: a new file has other content than the rotation wrote into it.
func TestWhatWasNotWrittenAsItWasMadeIsNotUsed(t *testing.T) {
	const conf = "admin.conf"
	for name, test := range map[string]struct {
		paths []string
		reads func(w *world, path string, made []byte) []byte
		want  string
	}{
		"the old pair":   {[]string{crt, key}, func(w *world, path string, _ []byte) []byte { return w.Read(path) }, "it does not have the new certificate"},
		"another user":   {[]string{conf}, replaced("- name: kubernetes-admin\n", "- name: somebody\n"), "more than its certificate would change"},
		"another server": {[]string{conf}, replaced("server: https://10.0.0.1:6443", "server: https://10.0.0.2:6443"), "more than its certificate would change"},
		"another CA": {[]string{conf}, func(w *world, _ string, made []byte) []byte {
			_, rest, _ := bytes.Cut(made, []byte("certificate-authority-data: "))
			ca, _, _ := bytes.Cut(rest, []byte("\n"))
			return bytes.Replace(made, ca, []byte("YW5vdGhlcg=="), 1)
		}, "more than its certificate would change"},
		"what clients cannot read": {[]string{conf}, replaced("apiVersion: v1\n", "apiVersion: v9\n"), "its clients could not load it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				w.Rotation = w.Changes(func(path string, made []byte) []byte {
					for _, one := range test.paths {
						if path == filepath.Join(w.dir(), one) {
							return test.reads(w, one, made)
						}
					}
					return made
				})
				w.leftAlone(test.paths[0], test.want, 10)
			})
		})
	}
}

func replaced(old, by string) func(*world, string, []byte) []byte {
	return func(_ *world, _ string, made []byte) []byte { return bytes.Replace(made, []byte(old), []byte(by), 1) }
}

func TestACertificateThatPeersWouldRefuseIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		ca, err := certificates.ReadAuthority(filepath.Join(w.dir(), "pki"), "front-proxy-ca", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		w.Write("pki/front-proxy-ca.crt", 0o644, certificates.EncodeChain(signsOnlyFor(t, ca, x509.ExtKeyUsageServerAuth).Certificate))
		w.leftAlone("pki/front-proxy-client.crt", "incompatible key usage", 10)
	})
}

// signsOnlyFor returns a CA as it was, except that it may sign for that usage only.
func signsOnlyFor(t *testing.T, ca certificates.Authority, usage x509.ExtKeyUsage) certificates.Authority {
	t.Helper()
	template := *ca.Certificate
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	return certificates.Authority{Certificate: sign(t, &template, &template, ca.Key, ca.Key), Key: ca.Key}
}

func sign(t *testing.T, template, by *x509.Certificate, key, ca crypto.Signer) *x509.Certificate {
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

func TestACertificateWithAnotherKindOfKeyIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		newKey, made := w.NewKey, 0
		w.NewKey = func(kind certificates.KeyKind) (crypto.Signer, error) {
			if made++; made == 1 {
				return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
			}
			return newKey(kind)
		}
		w.leftAlone("admin.conf", "its kind of key would change", 10)
	})
}

func TestACertificateIsVerifiedForEachOfItsUsages(t *testing.T) {
	now := time.Now().Add(2 * certificates.Year)
	ca, another := certificatestest.CA(t, "kubernetes", now.Add(day)), certificatestest.CA(t, "somebody", now.Add(day))
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	forServers, forClients := signsOnlyFor(t, ca, server), signsOnlyFor(t, ca, client)
	for name, test := range map[string]struct {
		ca     certificates.Authority
		until  time.Time
		usages []x509.ExtKeyUsage
		want   string
	}{
		"for both":                          {ca, now.Add(day), []x509.ExtKeyUsage{server, client}, ""},
		"for anything":                      {ca, now.Add(day), nil, ""},
		"expired by then":                   {ca, now.Add(-day), []x509.ExtKeyUsage{client}, "has expired"},
		"not signed by the CA":              {another, now.Add(day), []x509.ExtKeyUsage{client}, "unknown authority"},
		"not signed, for anything":          {another, now.Add(day), nil, "unknown authority"},
		"for anything, of a CA for clients": {forClients, now.Add(day), nil, ""},
		"for servers, as the CA":            {forServers, now.Add(day), []x509.ExtKeyUsage{server}, ""},
		"for clients, unlike the CA":        {forServers, now.Add(day), []x509.ExtKeyUsage{client}, "incompatible key usage"},
		"for both, unlike the CA":           {forServers, now.Add(day), []x509.ExtKeyUsage{server, client}, "incompatible key usage"},
	} {
		leaf := sign(t, &x509.Certificate{
			SerialNumber: big.NewInt(2), NotBefore: test.until.Add(-certificates.Year), NotAfter: test.until, ExtKeyUsage: test.usages,
		}, ca.Certificate, ca.Key, ca.Key)
		err := primary.Verify(leaf, test.ca.Certificate, now)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestEachDifferenceIsFound(t *testing.T) {
	for _, test := range []struct {
		change func(*x509.Certificate)
		want   string
	}{
		{func(*x509.Certificate) {}, ""},
		{func(c *x509.Certificate) { c.RawSubject = []byte("another") }, "subject"},
		{func(c *x509.Certificate) { c.DNSNames = []string{"another"} }, "list of names"},
		{func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCertSign }, "list of usages"},
		{func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, "list of usages"},
		{func(c *x509.Certificate) { c.PublicKey = ed25519.PublicKey{} }, "kind of key"},
		{func(c *x509.Certificate) { c.IsCA = true }, "CA flag"},
	} {
		renewed := &x509.Certificate{}
		test.change(renewed)
		if got := primary.Differs(&x509.Certificate{}, renewed); got != test.want {
			t.Errorf("%q differs, want %q", got, test.want)
		}
	}
}
