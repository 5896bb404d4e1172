package secrets_test

import (
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
	for want, forge := range map[string]func(t *testing.T, c *certificatestest.Cluster) (crt, key []byte){
		"the cluster's CA has not signed the certificate in Secret kurl/registry-pki (registry.crt)": func(t *testing.T, _ *certificatestest.Cluster) (crt, key []byte) {
			return certificatestest.Serving(t, certificatestest.CA(t, "somebody", time.Now().Add(certificates.Year)), "kubernetes-admin", soon(), "kubernetes.default.svc")
		},
		"the certificate in Secret kurl/registry-pki (registry.crt) is not for servers alone": func(t *testing.T, c *certificatestest.Cluster) (crt, key []byte) {
			return certificatestest.Pair(t, c.CA, "a client whose certificate expires", soon())
		},
	} {
		within(t, func(t *testing.T, c *certificatestest.Cluster) {
			c.InstallRegistry(soon(), 0)
			crt, private := forge(t, c)
			c.Edit(certificatestest.RegistrySecret, func(object map[string]any) {
				data := object["data"].(map[string]any)
				data["registry.crt"], data["registry.key"] = base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(private)
			})
			if facts := read(t, c, journal.CertificateRegistry); !facts.Due || facts.Unreadable != "" {
				t.Errorf("the facts are %+v", facts)
			}
			if err := c.Store().Ready(t.Context(), journal.CertificateRegistry); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry); err == nil || !strings.Contains(err.Error(), want) || len(c.Effects()) != 0 {
				t.Errorf("%v: %v", err, c.Effects())
			}
		})
	}
}
