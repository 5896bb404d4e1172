package certificates_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	certs "github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/certificates"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

func watching(t *testing.T, test func(b *observerstest.Bench, c *certificatestest.Cluster, dir string)) {
	t.Helper()
	dir := t.TempDir()
	var c *certificatestest.Cluster
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		c = certificatestest.NewCluster(t)
		b.Sources = func() []observers.Source {
			ofSecrets, ofFiles := certificates.New(c.Store(), dir, nil)
			return append(ofSecrets, ofFiles...)
		}
	}, func(b *observerstest.Bench) { test(b, c, dir) })
}

// wrote returns what was written since it was asked last, without the certificates.
func wrote(b *observerstest.Bench, want ...string) {
	b.Helper()
	got := b.Paper.Things()
	for i, line := range got {
		before, after, found := strings.Cut(line, `{"v":2,"certificates":[`)
		if found {
			_, after, _ = strings.Cut(after, "}]")
			got[i] = before + "{" + after
		}
	}
	slices.Sort(got) // each has a source of its own
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.Errorf("wrote\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFactIsWrittenWhenItMattersAndNotEachMinute(t *testing.T) {
	watching(t, func(b *observerstest.Bench, c *certificatestest.Cluster, _ string) {
		b.Pass(time.Hour)
		wrote(b)
		c.InstallRegistry(time.Now().Add(30*day+3*time.Hour), 0)
		b.Pass(70 * time.Second)
		wrote(b, "Certificate registry  {}")
		b.Pass(2 * time.Hour)
		wrote(b)
		for left, within := range []string{"30 days", "7 days", "1 day", "expired"} {
			left := []time.Duration{30 * day, 7 * day, day, 0}[left]
			c.InstallRegistry(time.Now().Add(left+time.Hour), 0)
			b.Pass(70 * time.Second)
			b.Paper.Things()
			b.Pass(50 * time.Minute)
			wrote(b)
			b.Pass(10 * time.Minute)
			wrote(b, `Certificate registry  {,"within":"`+within+`"}`)
			b.Pass(time.Hour)
			wrote(b)
		}
		c.Remove(certificatestest.RegistrySecret)
		b.Pass(70 * time.Second)
		wrote(b, "Certificate registry  gone: deleted")
	})
}

func TestWithClocksFarApartWhatIsKnownStaysAndThatIsSaid(t *testing.T) {
	watching(t, func(b *observerstest.Bench, c *certificatestest.Cluster, _ string) {
		c.InstallRegistry(time.Now().Add(30*day+time.Hour), 0)
		b.Pass(70 * time.Second)
		wrote(b, "Certificate registry  {}")
		c.Ahead(-15 * day) // it is EKCO's that is ahead
		b.Pass(2 * time.Hour)
		wrote(b)
		if b.Logged("the API server's clock is 360h0m0s behind EKCO's") == 0 {
			b.Errorf("nothing was said:\n%s", b.Said)
		}
		c.Ahead(0)
		b.Pass(2 * time.Hour)
		wrote(b, `Certificate registry  {,"within":"30 days"}`)
	})
}

func TestOneThatCannotBeReadKeepsNothingFromTheOthers(t *testing.T) {
	watching(t, func(b *observerstest.Bench, c *certificatestest.Cluster, dir string) {
		c.InstallRegistry(time.Now().Add(100*day), 0)
		c.Edit(certificatestest.RegistrySecret, func(object map[string]any) { object["data"] = map[string]any{} })
		c.InstallKurlProxy(time.Now().Add(100*day), "admin.example.com")
		ca := certs.EncodeChain(certificatestest.CA(t, "kubernetes", time.Now().Add(29*day)).Certificate)
		if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600); err != nil {
			t.Fatal(err)
		}
		b.Pass(2 * time.Hour)
		wrote(b,
			`Certificate kurl-proxy  {,"foreign":true,"unrenewed":"kURL did not generate it, so it is a customer's own"}`,
			`Certificate pki/ca.crt  {,"unrenewed":"EKCO does not renew CAs","within":"30 days"}`,
			`Certificate registry  {"v":2,"unreadable":"read Secret kurl/registry-pki (registry.crt): it is empty"}`,
		)
	})
}

// TestASecretThatChangesIsReadAtOnce: an expired certificate that somebody puts there is not unnoticed for a
// minute, and nothing is read for another Secret.
func TestASecretThatChangesIsReadAtOnce(t *testing.T) {
	var c *certificatestest.Cluster
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		c = certificatestest.NewCluster(t)
		b.Sources = func() []observers.Source {
			ofSecrets, _ := certificates.New(c.Store(), t.TempDir(), nil)
			return append(ofSecrets, certificates.Watching(ofSecrets, c.Store().Refs, func(ref kube.Ref) kube.Source {
				return b.SecretNamed(ref.Namespace, ref.Name)
			})...)
		}
	}, func(b *observerstest.Bench) {
		b.Settle()
		changes := func(ref kube.Ref, version string) {
			b.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.Name), Labels: map[string]string{"version": version}}})
			b.Settle()
		}
		c.InstallRegistry(time.Now().Add(40*day), 0)
		reads := c.Calls("get secrets")
		changes(certificatestest.RegistrySecret, "1")
		wrote(b, "Certificate registry  {}")
		if n := c.Calls("get secrets") - reads; n != 1 {
			t.Errorf("%d Secrets were read", n)
		}
		c.InstallRegistry(time.Now().Add(-time.Hour), 0)
		changes(certificatestest.RegistrySecret, "2")
		wrote(b, `Certificate registry  {,"within":"expired"}`)
		changes(kube.Ref{Namespace: "kurl", Name: "another"}, "1")
		if n := c.Calls("get secrets") - reads; n != 2 {
			t.Errorf("%d Secrets were read", n)
		}
	})
}
