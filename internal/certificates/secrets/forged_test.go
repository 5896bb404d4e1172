package secrets_test

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/journal"
)

// TestTheClusterVouchesForNothingThatSomebodyWroteIntoTheRegistrysSecret: he would have a certificate of
// the cluster's CA, and its key, for any name and any client that he likes.
func TestTheClusterVouchesForNothingThatSomebodyWroteIntoTheRegistrysSecret(t *testing.T) {
	const unsigned, notForServers = "the cluster's CA has not signed the certificate in Secret kurl/registry-pki (registry.crt)",
		"the certificate in Secret kurl/registry-pki (registry.crt) is not only for servers"
	for name, test := range map[string]struct {
		forge func(t *testing.T, c *certificatestest.Cluster) (crt, key []byte)
		want  string
	}{
		"of another CA": {func(t *testing.T, _ *certificatestest.Cluster) (crt, key []byte) {
			return certificatestest.Serving(t, certificatestest.CA(t, "somebody", time.Now().Add(certificates.Year)), "kubernetes-admin", soon(), "kubernetes.default.svc")
		}, unsigned},
		"for clients, too": {changed(func(server *x509.Certificate) {
			server.ExtKeyUsage = append(server.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
		}), notForServers},
		"for all purposes":    {changed(func(server *x509.Certificate) { server.ExtKeyUsage = nil }), notForServers},
		"for another usage":   {changed(func(server *x509.Certificate) { server.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3}} }), notForServers},
		"of a CA for servers": {changed(func(server *x509.Certificate) { server.IsCA = true }), notForServers},
	} {
		within(t, func(t *testing.T, c *certificatestest.Cluster) {
			c.InstallRegistry(soon(), 0)
			crt, private := test.forge(t, c)
			c.Edit(certificatestest.RegistrySecret, func(object map[string]any) {
				data := object["data"].(map[string]any)
				data["registry.crt"], data["registry.key"] = base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(private)
			})
			if facts := read(t, c, journal.CertificateRegistry); !isDue(facts) || facts.Unreadable != "" {
				t.Errorf("%s: the facts are %+v", name, facts)
			}
			if err := c.Store().Ready(t.Context(), journal.CertificateRegistry); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %s", name, err, test.want)
			}
			if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); err == nil || !strings.Contains(err.Error(), test.want) || len(c.Effects()) != 0 {
				t.Errorf("%s: %v: %v", name, err, c.Effects())
			}
		})
	}
}

// changed forges a certificate that the cluster's CA signed for a server and that is changed in one thing.
func changed(change func(server *x509.Certificate)) func(t *testing.T, c *certificatestest.Cluster) (crt, key []byte) {
	return func(t *testing.T, c *certificatestest.Cluster) (crt, key []byte) {
		t.Helper()
		content, _ := certificatestest.Serving(t, c.CA, "registry.kurl.svc.cluster.local", soon(), "registry.kurl")
		server, err := certificates.File{Content: content}.OneCertificate()
		if err != nil {
			t.Fatal(err)
		}
		change(server)
		forged, private, err := certificates.Renew(server, c.CA, certificates.Renewal{Now: soon().Add(-certificates.Year), For: certificates.Year})
		if err != nil {
			t.Fatal(err)
		}
		if key, err = certificates.EncodeKey(private); err != nil {
			t.Fatal(err)
		}
		return certificates.EncodeChain(forged), key
	}
}

// TestTheRegistryIsSignedByTheCAThatSignedIt: two CAs with the same key in ca.crt; container runtimes of nodes trust
// the one that was there when they were installed.
func TestTheRegistryIsSignedByTheCAThatSignedIt(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallRegistry(soon(), 0)
		old := c.CA
		longer := certificatestest.Resigned(t, old, "kubernetes-2", time.Now().Add(20*certificates.Year))
		c.CA = certificates.Authority{Certificate: longer, Key: old.Key, Others: []*x509.Certificate{old.Certificate}} // as NewAuthority returns it
		if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); err != nil {
			t.Fatal(err)
		}
		if leaf := c.Held(certificatestest.RegistrySecret, "registry.crt"); !certificates.SignedBy(leaf, old.Certificate) {
			t.Errorf("issuer is %s", leaf.Issuer)
		}
	})
}
