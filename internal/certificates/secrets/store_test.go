package secrets_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const day = 24 * time.Hour

// within runs a test with a fake clock.
func within(t *testing.T, test func(t *testing.T, c *certificatestest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, certificatestest.NewCluster(t))
	})
}

// due is the rule of EKCO itself.
func due(facts journal.CertificateFacts) (why string, due bool) {
	return fsmcertificates.Policy{TTL: 30 * day}.Due(facts, journal.CertificateInput{}, time.Now())
}

func isDue(facts journal.CertificateFacts) bool {
	_, is := due(facts)
	return is
}

func soon() time.Time { return time.Now().Add(time.Hour) }

func read(t *testing.T, c *certificatestest.Cluster, of journal.Subject) journal.CertificateFacts {
	t.Helper()
	facts, err := c.Store().Read(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func TestTheRegistrysCertificateIsSignedByTheClusterAndAllElseStaysInItsSecret(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallRegistry(soon(), 0)
		before, old := c.Object(certificatestest.RegistrySecret), c.Held(certificatestest.RegistrySecret, "registry.crt")
		if facts := read(t, c, journal.CertificateRegistry); !isDue(facts) || facts.Within != journal.Within1Day || facts.Certificates[0].At != "Secret kurl/registry-pki (registry.crt)" {
			t.Errorf("the facts are %+v", facts)
		}
		facts, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due)
		if err != nil {
			t.Fatal(err)
		}
		renewed := c.Held(certificatestest.RegistrySecret, "registry.crt")
		if isDue(facts) || facts.Unreadable != "" || facts.Within != "" || facts.Certificates[0].Fingerprint != certificates.Fingerprint(renewed) {
			t.Errorf("afterwards the facts are %+v", facts)
		}
		if err := renewed.CheckSignatureFrom(c.CA.Certificate); err != nil || !renewed.NotAfter.Equal(time.Now().Add(certificates.Year).Truncate(time.Second)) {
			t.Errorf("%v; it is valid until %s", err, renewed.NotAfter)
		}
		if diff := cmp.Diff(old.DNSNames, renewed.DNSNames); diff != "" || string(old.RawSubject) != string(renewed.RawSubject) {
			t.Errorf("it is of another: %s", diff)
		}
		after := c.Object(certificatestest.RegistrySecret)
		for _, object := range []map[string]any{before, after} {
			data, meta := object["data"].(map[string]any), object["metadata"].(map[string]any)
			delete(data, "registry.crt")
			delete(data, "registry.key")
			delete(meta, "resourceVersion")
			delete(object, "status") // which the simulation adds
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("more has changed:\n%s", diff)
		}
	})
}

// TestTheRegistrysCertificateIsRenewedDuringACARotation: the CA with the key signs, and a third one is not trusted.
func TestTheRegistrysCertificateIsRenewedDuringACARotation(t *testing.T) {
	for signer, trusted := range map[string]bool{"the other CA in ca.crt": true, "a third CA": false} {
		within(t, func(t *testing.T, c *certificatestest.Cluster) {
			c.InstallRegistry(soon(), 0)
			old := c.CA
			c.CA = certificatestest.OtherCA(t, "kubernetes of "+signer, time.Now().Add(5*certificates.Year))
			c.CA.Others = []*x509.Certificate{certificatestest.CA(t, "unrelated", time.Now().Add(certificates.Year)).Certificate}
			if trusted {
				c.CA.Others = append(c.CA.Others, old.Certificate)
			}
			if err := c.Store().Ready(t.Context(), journal.CertificateRegistry); (err == nil) != trusted {
				t.Errorf("signed by %s: %v", signer, err)
			}
			_, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due)
			if now := certificates.SignedBy(c.Held(certificatestest.RegistrySecret, "registry.crt"), c.CA.Certificate); (err == nil) != trusted || now != trusted {
				t.Errorf("signed by %s: renewed by the CA with the key: %t: %v", signer, now, err)
			}
		})
	}
}

func TestContourAndEnvoyAreRenewedTogetherByANewCA(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(soon())
		old := c.Held(certificatestest.ContourSecret, "ca.crt")
		facts, err := c.Store().Renew(t.Context(), journal.CertificateContour, due)
		if err != nil || isDue(facts) || len(facts.Certificates) != 4 {
			t.Fatalf("%v: %+v", err, facts)
		}
		ca := c.Held(certificatestest.ContourSecret, "ca.crt")
		if ca.Equal(old) || string(ca.RawSubject) != string(old.RawSubject) || !ca.Equal(c.Held(certificatestest.EnvoySecret, "ca.crt")) {
			t.Error("the CA is not new, or not the same")
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		for ref, name := range map[kube.Ref]string{certificatestest.ContourSecret: "contour", certificatestest.EnvoySecret: "envoy.projectcontour.svc"} {
			if _, err := c.Held(ref, "tls.crt").Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: time.Now()}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWhatWasHalfWrittenIsRenewedAgain: neither is due by itself, and they do not accept one
// another.
func TestWhatWasHalfWrittenIsRenewedAgain(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(time.Now().Add(300 * day))
		contour := certificatestest.CA(t, "Another Contour", time.Now().Add(300*day))
		c.Edit(certificatestest.EnvoySecret, func(object map[string]any) {
			crt, key := certificatestest.Pair(t, contour, "envoy", time.Now().Add(300*day), "envoy")
			data := object["data"].(map[string]any)
			data["tls.crt"], data["tls.key"] = base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(key)
		})
		if _, lacks, err := c.Store().WhyNotRenewed(t.Context(), journal.CertificateContour, due); err != nil || !strings.Contains(lacks, "Secret projectcontour/envoycert is not signed by the CA in Secret projectcontour/contourcert") {
			t.Errorf("%v: %q", err, lacks)
		}
		if _, err := c.Store().Renew(t.Context(), journal.CertificateContour, due); err != nil {
			t.Fatal(err)
		}
		if _, lacks, err := c.Store().WhyNotRenewed(t.Context(), journal.CertificateContour, due); err != nil || lacks != "" {
			t.Errorf("%v: %q", err, lacks)
		}
	})
}

func TestWhatIsNotEKCOsToRenewStaysAsItIs(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallKurlProxy(soon(), "admin.example.com")
		if facts := read(t, c, journal.CertificateKurlProxy); !facts.Foreign || isDue(facts) || facts.Unrenewed == "" || facts.Within != journal.Within1Day {
			t.Errorf("the facts are %+v", facts)
		}
		if _, err := c.Store().Renew(t.Context(), journal.CertificateKurlProxy, due); err != nil || len(c.Effects()) != 0 {
			t.Errorf("%v: %v", err, c.Effects())
		}
		c.InstallRegistry(time.Now().Add(31*day), 0)
		if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); err != nil || len(c.Effects()) != 0 {
			t.Errorf("%v: %v", err, c.Effects())
		}
	})
}

// proxySecret returns what the proxy's Secret holds.
func proxySecret(t *testing.T, name string) (crt, key []byte) {
	t.Helper()
	issuer := certificatestest.CA(t, name+"'s CA", soon())
	return certificatestest.Pair(t, issuer, name, soon(), name)
}

func TestACustomersOwnMayBeOddAndItsEndIsKnown(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		crt, key := proxySecret(t, "admin.example.com")
		other := certificates.EncodeChain(certificatestest.CA(t, "A", time.Now().Add(300*day)).Certificate)
		_, stranger := newKey(t)
		join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
		for name, data := range map[string][2][]byte{
			"the wrong order":      {join(other, crt), key},
			"not of one chain":     {join(crt, other), key},
			"key in the same file": {join(key, crt), key},
			"text behind":          {join(crt, []byte("thanks")), key},
			"another's key":        {crt, stranger},
			"an encrypted key":     {crt, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")},
			"too many":             {join(crt, bytes.Repeat(other, 20)), key},
		} {
			c.Put(certificatestest.KurlProxySecret, certificatestest.Secret(map[string][]byte{"tls.crt": data[0], "tls.key": data[1]}))
			facts := read(t, c, journal.CertificateKurlProxy)
			if !facts.Foreign || facts.Unreadable != "" || isDue(facts) || facts.Within != journal.Within1Day || len(facts.Certificates) > 10 {
				t.Errorf("%s: the facts are %+v", name, facts)
			}
			if _, err := c.Store().Renew(t.Context(), journal.CertificateKurlProxy, due); err != nil || len(c.Effects()) != 0 {
				t.Errorf("%s: %v: %v", name, err, c.Effects())
			}
		}
	})
}

func TestWhatKURLGeneratedAndCannotBeReadIsNoCustomersOwn(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		crt, key := proxySecret(t, certificates.KurlProxyHost)
		for name, content := range map[string][]byte{"none": []byte("x"), "text behind": append(crt, "x"...)} {
			c.Put(certificatestest.KurlProxySecret, certificatestest.Secret(map[string][]byte{"tls.crt": content, "tls.key": key}))
			if facts := read(t, c, journal.CertificateKurlProxy); facts.Foreign || facts.Unreadable == "" || isDue(facts) {
				t.Errorf("%s: the facts are %+v", name, facts)
			}
		}
	})
}

func TestWhatIsNotValidYetIsSaidAndNotRenewed(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		for early, want := range map[time.Duration]string{
			secrets.MostSkew - time.Second: "", secrets.MostSkew + time.Second: "(registry.crt) (registry.kurl.svc.cluster.local) is not valid before ",
		} {
			c.InstallRegistry(time.Now().Add(certificates.Year+early), 0)
			facts := read(t, c, journal.CertificateRegistry)
			if !strings.Contains(facts.Unreadable, want) || (facts.Unreadable == "") != (want == "") || isDue(facts) {
				t.Errorf("%s early: the facts are %+v", early, facts)
			}
			if want != "" && !strings.HasSuffix(facts.Unreadable, "; check the clock; if it is right, recreate the certificate") {
				t.Errorf("it says %s", facts.Unreadable)
			}
		}
		c.InstallContour(time.Now().Add(300 * day))
		c.Edit(certificatestest.EnvoySecret, func(object map[string]any) {
			ca := certificatestest.CA(t, "Project Contour", time.Now().Add(10*certificates.Year+day))
			object["data"].(map[string]any)["ca.crt"] = base64.StdEncoding.EncodeToString(certificates.EncodeChain(ca.Certificate))
		})
		if facts := read(t, c, journal.CertificateContour); !strings.Contains(facts.Unreadable, "envoycert (ca.crt) (Project Contour) is not valid before ") {
			t.Errorf("the facts are %+v", facts)
		}
	})
}

func TestTheProxysOwnKeepsItsNames(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallKurlProxy(soon(), "")
		old := c.Held(certificatestest.KurlProxySecret, "tls.crt")
		facts, err := c.Store().Renew(t.Context(), journal.CertificateKurlProxy, due)
		if err != nil || isDue(facts) || facts.Foreign || len(facts.Certificates) != 2 {
			t.Fatalf("%v: %+v", err, facts)
		}
		if diff := cmp.Diff(certificates.Names(old), certificates.Names(c.Held(certificatestest.KurlProxySecret, "tls.crt"))); diff != "" {
			t.Error(diff)
		}
	})
}

func newKey(t *testing.T) (crypto.Signer, []byte) {
	t.Helper()
	key, err := certificates.NewKey(certificates.ECDSAP256)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := certificates.EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, encoded
}

func TestWhatIsWrongWithASecretIsSaidWithItsKeyAndNothingIsWritten(t *testing.T) {
	set := func(key, content string) func(map[string]any) {
		return func(data map[string]any) { data[key] = base64.StdEncoding.EncodeToString([]byte(content)) }
	}
	_, other := newKey(t)
	for want, change := range map[string]func(map[string]any){
		"Secret kurl/registry-pki (registry.crt): it is empty":                           func(data map[string]any) { delete(data, "registry.crt") },
		"(registry.key): it is empty":                                                    func(data map[string]any) { delete(data, "registry.key") },
		"(registry.crt): it has no PEM block":                                            set("registry.crt", "secret"),
		"(registry.key): it has no PEM block":                                            set("registry.key", "secret"),
		"(registry.key) is not the key of Secret kurl/registry-pki (registry.crt) (regi": set("registry.key", string(other)),
		"2 certificates, and should have no more than 1": func(data map[string]any) {
			content, err := base64.StdEncoding.DecodeString(data["registry.crt"].(string))
			if err != nil {
				t.Fatal(err)
			}
			set("registry.crt", string(content)+string(content))(data)
		},
	} {
		within(t, func(t *testing.T, c *certificatestest.Cluster) {
			// It is self-signed, so that two of them are in the right order.
			c.CA = certificatestest.CA(t, "registry.kurl.svc.cluster.local", time.Now().Add(certificates.Year))
			c.InstallRegistry(soon(), 0)
			c.Edit(certificatestest.RegistrySecret, func(object map[string]any) { change(object["data"].(map[string]any)) })
			facts := read(t, c, journal.CertificateRegistry)
			if !strings.Contains(facts.Unreadable, want) || strings.Contains(facts.Unreadable, "secret") || isDue(facts) {
				t.Errorf("the facts are %+v, want %q", facts, want)
			}
			if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); err == nil || !strings.Contains(err.Error(), want) || len(c.Effects()) != 0 {
				t.Errorf("%v: %v", err, c.Effects())
			}
		})
	}
}

func TestWhatIsNotThereOrNotConfiguredIsNotFound(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		for _, of := range secrets.Subjects() {
			if _, err := c.Store().Read(t.Context(), of); !errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
				t.Errorf("%s: %v", of.Name, err)
			}
		}
		contour, _ := certificatestest.Contour(t, soon())
		c.Put(certificatestest.ContourSecret, contour)
		if _, err := c.Store().Read(t.Context(), journal.CertificateContour); !errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
			t.Errorf("one Secret alone: %v", err)
		}
		options := c.Options()
		options.Registry = kube.Ref{}
		if _, err := secrets.New(c, options).Read(t.Context(), journal.CertificateRegistry); !errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
			t.Errorf("not configured: %v", err)
		}
		c.Forbid("get secrets")
		if _, err := c.Store().Read(t.Context(), journal.CertificateRegistry); !errors.Is(kube.Sentinel(err), kube.ErrForbidden) {
			t.Errorf("forbidden: %v", err)
		}
	})
}

func TestWithClocksFarApartNothingIsConcluded(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallRegistry(soon(), 0)
		for ahead, want := range map[time.Duration]string{
			day: "the API server's clock is 24h0m0s ahead of EKCO's", -day: "24h0m0s behind EKCO's", 6 * time.Minute: "6m0s ahead", 4 * time.Minute: "",
		} {
			c.Ahead(ahead)
			_, err := c.Store().Read(t.Context(), journal.CertificateRegistry)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s ahead: %v", ahead, err)
			}
			if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); (err == nil) != (want == "") {
				t.Errorf("%s ahead: %v", ahead, err)
			}
		}
		if n := len(c.Effects()); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
}

func TestWhoWroteMeanwhileIsNotOverwritten(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallKurlProxy(soon(), "")
		c.BeforeEffect = func(string) {
			c.BeforeEffect = nil
			c.Put(certificatestest.KurlProxySecret, certificatestest.KurlProxy(t, soon(), "admin.example.com"))
		}
		if _, err := c.Store().Renew(t.Context(), journal.CertificateKurlProxy, due); !errors.Is(kube.Sentinel(err), kube.ErrConflict) {
			t.Errorf("got %v", err)
		}
		if name := c.Held(certificatestest.KurlProxySecret, "tls.crt").Subject.CommonName; name != "admin.example.com" {
			t.Errorf("it is %s", name)
		}
	})
}

func TestACAThatEndsMakesBothOfItsCertificatesDue(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(time.Now().Add(300 * day))
		if facts := read(t, c, journal.CertificateContour); isDue(facts) {
			t.Errorf("the facts are %+v", facts)
		}
		ca := certificatestest.CA(t, "Project Contour", soon()) // with the same key
		c.Edit(certificatestest.ContourSecret, func(object map[string]any) {
			object["data"].(map[string]any)["ca.crt"] = base64.StdEncoding.EncodeToString(certificates.EncodeChain(ca.Certificate))
		})
		if facts := read(t, c, journal.CertificateContour); !isDue(facts) || facts.Within != journal.Within1Day {
			t.Errorf("the facts are %+v", facts)
		}
	})
}

func TestAPodThatEndsIsNotWaitedFor(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallRegistry(soon(), 2)
		if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"registry-1", "registry-2"} {
			c.Edit(certificatestest.PodRef("kurl", name), func(object map[string]any) {
				object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-23T12:00:00Z"
			})
		}
		if lacks, err := c.Store().WhyNotServed(t.Context(), journal.CertificateRegistry, 0); err != nil || lacks != "" {
			t.Errorf("%v: %s", err, lacks)
		}
	})
}

func TestOnlyPodsWithTheOldCertificateAreRestarted(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.ReadyAfter = 0
		c.InstallRegistry(soon(), 2)
		store, of := c.Store(), journal.CertificateRegistry
		pods, err := store.Pods(t.Context(), of)
		if err != nil || len(pods) != 2 {
			t.Fatalf("%v: %v", err, pods)
		}
		if _, err := store.Renew(t.Context(), of, due); err != nil {
			t.Fatal(err)
		}
		c.Pod("kurl", "registry", "registry-3", certificatestest.RegistrySecret, "registry.crt")
		c.Remove(certificatestest.PodRef("kurl", "registry-2"))
		c.Pod("kurl", "registry", "registry-2", certificatestest.RegistrySecret, "registry.crt") // another of its name
		if lacks, err := store.WhyNotRestarted(t.Context(), of, pods, time.Now()); err != nil || lacks != "pod kurl/registry-1 was not restarted" {
			t.Errorf("%v: %s", err, lacks)
		}
		if lacks, err := store.WhyNotServed(t.Context(), of, 1); err != nil || !strings.HasPrefix(lacks, "pod kurl/registry-1: it serves another certificate, which expires at ") {
			t.Errorf("%v: %s", err, lacks)
		}
		if err := store.Restart(t.Context(), of, pods, time.Now()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"update secrets kurl/registry-pki", "delete pods kurl/registry-1"}, effects(c)); diff != "" {
			t.Error(diff)
		}
		if lacks, err := store.WhyNotServed(t.Context(), of, 1); err != nil || lacks != "" {
			t.Errorf("%v: %s", err, lacks)
		}
		for _, name := range []string{"registry-2", "registry-3"} {
			c.Remove(certificatestest.PodRef("kurl", name))
		}
		if lacks, err := store.WhyNotServed(t.Context(), of, 1); err != nil || lacks != "no pod of the registry runs" {
			t.Errorf("%v: %s", err, lacks)
		}
		if lacks, err := store.WhyNotServed(t.Context(), of, 0); err != nil || lacks != "" {
			t.Errorf("where none ran: %v: %s", err, lacks)
		}
	})
}

func effects(c *certificatestest.Cluster) (names []string) {
	for _, effect := range c.Effects() {
		names = append(names, effect.Name)
	}
	return names
}

func TestPodsSayWhyTheyAreNotReady(t *testing.T) {
	for status, want := range map[string]string{
		`{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]}`:                                         "pod kurl/x: Pending: Unschedulable: no room",
		`{"phase":"Running","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"registry","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`: "pod kurl/x: Running: container registry: CrashLoopBackOff",
		`{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`:                                                                                              "pod kurl/x: it has no address yet",
		`{"phase":"Running","podIP":"10.9.9.9","conditions":[{"type":"Ready","status":"True"}]}`:                                                                           "pod kurl/x: TLS handshake with 10.9.9.9:443: connection refused",
		`{"phase":"Failed"}`:    "no pod of the registry runs",
		`{"phase":"Succeeded"}`: "no pod of the registry runs",
	} {
		within(t, func(t *testing.T, c *certificatestest.Cluster) {
			c.InstallRegistry(soon(), 0)
			c.Put(certificatestest.PodRef("kurl", "x"), `{"metadata":{"labels":{"app":"registry"}},"status":`+status+`}`)
			if lacks, err := c.Store().WhyNotServed(t.Context(), journal.CertificateRegistry, 1); err != nil || lacks != want {
				t.Errorf("%v: %q, want %q", err, lacks, want)
			}
		})
	}
}

func TestEnvoyIsRestartedOnceAndAwaited(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(soon())
		c.Edit(certificatestest.Envoys, func(object map[string]any) { object["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"} })
		store, of, at := c.Store(), journal.CertificateContour, time.Now()
		<-time.After(time.Minute)
		for _, said := range []string{"", "yesterday", "2999-01-01T00:00:00Z", at.Add(-time.Hour).Format(time.RFC3339)} {
			c.Edit(certificatestest.Envoys, func(object map[string]any) {
				template := object["spec"].(map[string]any)["template"].(map[string]any)
				template["metadata"] = map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": said}}
			})
			if lacks, err := store.WhyNotRestarted(t.Context(), of, nil, at); err != nil || lacks != "DaemonSet projectcontour/envoy was not restarted" {
				t.Errorf("%q: %v: %s", said, err, lacks)
			}
		}
		if err := store.Restart(t.Context(), of, nil, at); err != nil {
			t.Fatal(err)
		}
		if lacks, err := store.WhyNotRestarted(t.Context(), of, nil, at); err != nil || lacks != "" {
			t.Errorf("%v: %s", err, lacks)
		}
		if lacks, err := store.WhyNotServed(t.Context(), of, 0); err != nil || lacks != "DaemonSet projectcontour/envoy: its controller has not seen the change" {
			t.Errorf("%v: %s", err, lacks)
		}
		<-time.After(time.Minute)
		if lacks, err := store.WhyNotServed(t.Context(), of, 0); err != nil || lacks != "" {
			t.Errorf("%v: %s", err, lacks)
		}
		c.Edit(certificatestest.Envoys, func(object map[string]any) { object["status"].(map[string]any)["numberAvailable"] = 2 })
		if lacks, err := store.WhyNotServed(t.Context(), of, 0); err != nil || lacks != "DaemonSet projectcontour/envoy: 3 of 3 pods are new, and 2 are available" {
			t.Errorf("%v: %s", err, lacks)
		}
		c.Remove(certificatestest.Envoys)
		if lacks, err := store.WhyNotRestarted(t.Context(), of, nil, time.Now()); err != nil || lacks != "" {
			t.Errorf("%v: %s", err, lacks)
		}
	})
}

func TestPodsThatAreNotReadyAreNotWaitedForOnceAnotherServes(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallRegistry(time.Now().Add(300*day), 0)
		c.Put(certificatestest.PodRef("kurl", "lost"), `{"metadata":{"labels":{"app":"registry"}},"status":{"phase":"Running"}}`)
		const lost, old = "pod kurl/lost: Running, not ready", "pod kurl/old: it serves another certificate"
		unserved := func(want string) {
			t.Helper()
			lacks, err := c.Store().WhyNotServed(t.Context(), journal.CertificateRegistry, 1)
			if err != nil || !strings.HasPrefix(lacks, want) || (lacks == "") != (want == "") {
				t.Errorf("%v: %q, want %q", err, lacks, want)
			}
		}
		unserved(lost)
		c.Pod("kurl", "registry", "old", certificatestest.RegistrySecret, "registry.crt")
		c.InstallRegistry(time.Now().Add(301*day), 0)
		unserved(old)
		c.Pod("kurl", "registry", "new", certificatestest.RegistrySecret, "registry.crt")
		unserved(old)
		c.Remove(certificatestest.PodRef("kurl", "old"))
		unserved("")
	})
}

func TestEnvoysOnNodesThatAreNotReadyAreNotWaitedForOnceThereIsANewOne(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(time.Now().Add(300 * day))
		node := func(name, ready string) {
			c.Put(kube.Ref{Version: "v1", Resource: "nodes", Name: name}, `{"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
		}
		for _, name := range []string{"a", "b", "c"} {
			node(name, "True")
			c.Put(certificatestest.PodRef("projectcontour", "envoy-"+name), `{"metadata":{"labels":{"app":"envoy"}},"spec":{"nodeName":"`+name+`"}}`)
		}
		c.Put(certificatestest.PodRef("projectcontour", "envoy-c2"), `{"metadata":{"labels":{"app":"envoy"}},"spec":{"nodeName":"c"}}`)
		c.Put(certificatestest.PodRef("projectcontour", "envoy-d"), `{"metadata":{"labels":{"app":"envoy"}}}`)
		c.Put(certificatestest.PodRef("projectcontour", "envoy-e"), `{"metadata":{"labels":{"app":"envoy"}},"spec":{"nodeName":"removed"}}`)
		node("none-of-envoy", "False")
		rolled := func(updated, available int, want bool) {
			t.Helper()
			c.Edit(certificatestest.Envoys, func(object map[string]any) {
				status := object["status"].(map[string]any)
				status["updatedNumberScheduled"], status["numberAvailable"] = updated, available
			})
			if lacks, err := c.Store().WhyNotServed(t.Context(), journal.CertificateContour, 0); err != nil || (lacks == "") != want {
				t.Errorf("%d updated, %d available: %v: %q", updated, available, err, lacks)
			}
		}
		rolled(3, 3, true)
		rolled(2, 2, false)
		node("c", "Unknown")
		rolled(2, 2, true)
		rolled(1, 2, false)
		rolled(2, 1, false)
		node("a", "False")
		node("b", "False")
		rolled(1, 1, true)
		rolled(0, 1, false)
		rolled(1, 0, false)
	})
}

func TestTheAnnotationsOfADaemonSetStay(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(soon())
		c.Put(certificatestest.Envoys, `{"spec":{"template":{"metadata":{"annotations":{"kept":"yes"}}}}}`)
		if err := c.Store().Restart(t.Context(), journal.CertificateContour, nil, time.Now()); err != nil {
			t.Fatal(err)
		}
		spec := c.Object(certificatestest.Envoys)["spec"].(map[string]any)
		annotations := spec["template"].(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
		if len(annotations) != 2 || annotations["kept"] != "yes" {
			t.Errorf("they are %v", annotations)
		}
		c.Put(certificatestest.Envoys, `{"spec":{"template":{"metadata":{}}}}`)
		c.BeforeEffect = func(string) {
			c.Edit(certificatestest.Envoys, func(object map[string]any) { object["touched"] = true })
		}
		if err := c.Store().Restart(t.Context(), journal.CertificateContour, nil, time.Now()); !errors.Is(kube.Sentinel(err), kube.ErrConflict) {
			t.Errorf("changed meanwhile: %v", err)
		}
	})
}

func TestACAInAFileIsShownAndNotRenewed(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	ca := certificatestest.CA(t, "etcd-ca", now.Add(6*day))
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A bundle of two, of which the first ends first.
	bundle := certificates.EncodeChain(ca.Certificate, certificatestest.CA(t, "etcd-ca", now.Add(60*day)).Certificate, certificatestest.CA(t, "x", now.Add(61*day)).Certificate)
	if err := os.WriteFile(filepath.Join(dir, "etcd/ca.crt"), bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	facts, err := secrets.ReadCA(t.Context(), dir, "etcd/ca.crt", now)
	if err != nil || len(facts.Certificates) != 3 || facts.Within != journal.Within7Days || facts.Unrenewed == "" || facts.Unreadable != "" {
		t.Errorf("%v: %+v", err, facts)
	}
	if _, err := secrets.ReadCA(t.Context(), dir, "ca.crt", now); !errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if facts, err := secrets.ReadCA(t.Context(), dir, "ca.crt", now); err != nil || !strings.Contains(facts.Unreadable, "no PEM block") {
		t.Errorf("%v: %+v", err, facts)
	}
}

func TestASecretThatNobodyCanWriteIsSaidBeforeOneIsWritten(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.InstallContour(soon())
		if err := c.Store().Ready(t.Context(), journal.CertificateContour); err != nil {
			t.Error(err)
		}
		for _, ref := range []kube.Ref{certificatestest.EnvoySecret, certificatestest.ContourSecret} {
			c.Edit(ref, func(object map[string]any) { object["immutable"] = true })
			if err := c.Store().Ready(t.Context(), journal.CertificateContour); !errors.Is(err, secrets.ErrImmutable) || !strings.Contains(err.Error(), ref.Name) {
				t.Errorf("%s: %v", ref.Name, err)
			}
			c.Edit(ref, func(object map[string]any) { object["immutable"] = false })
		}
	})
}

// TestARetryWritesWhatTheFirstTryMade: the key of the CA that the first try made is nowhere.
func TestARetryWritesWhatTheFirstTryMade(t *testing.T) {
	for _, changed := range []bool{false, true} {
		within(t, func(t *testing.T, c *certificatestest.Cluster) {
			c.InstallContour(soon())
			store, updates := c.Store(), 0
			c.BeforeEffect = func(string) {
				if updates++; updates == 2 { // the second Secret is written by another just now
					c.Edit(certificatestest.EnvoySecret, func(object map[string]any) { object["touched"] = true })
				}
			}
			if _, err := store.Renew(t.Context(), journal.CertificateContour, due); !errors.Is(kube.Sentinel(err), kube.ErrConflict) {
				t.Fatalf("got %v", err)
			}
			first := c.Held(certificatestest.ContourSecret, "ca.crt")
			if changed {
				_, envoy := certificatestest.Contour(t, time.Now().Add(2*time.Hour))
				c.Put(certificatestest.EnvoySecret, envoy)
			}
			if _, err := store.Renew(t.Context(), journal.CertificateContour, due); err != nil {
				t.Fatal(err)
			}
			if same := c.Held(certificatestest.ContourSecret, "ca.crt").Equal(first); same == changed {
				t.Errorf("with Envoy's Secret changed (%v) the CA is the same: %v", changed, same)
			}
			if _, lacks, err := store.WhyNotRenewed(t.Context(), journal.CertificateContour, due); err != nil || lacks != "" {
				t.Errorf("%v: %s", err, lacks)
			}
		})
	}
}

func TestTheRegistryWaitsForWhoCanSign(t *testing.T) {
	within(t, func(t *testing.T, c *certificatestest.Cluster) {
		c.SignNothing(certificates.ErrExternalCA)
		c.InstallRegistry(soon(), 0)
		c.InstallKurlProxy(soon(), "")
		if err := c.Store().Ready(t.Context(), journal.CertificateRegistry); !errors.Is(err, certificates.ErrExternalCA) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Store().Renew(t.Context(), journal.CertificateRegistry, due); !errors.Is(err, certificates.ErrExternalCA) {
			t.Errorf("got %v", err)
		}
		if err := c.Store().Ready(t.Context(), journal.CertificateKurlProxy); err != nil {
			t.Error(err)
		}
	})
}
