package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// addSecret adds a Secret, and its namespace if that is not there.
func (c *cluster) addSecret(namespace, name string, data map[string][]byte) {
	c.t.Helper()
	ctx := c.t.Context()
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatal(err)
	}
	if _, err := c.client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// ca is that of the control plane.
func (c *cluster) ca() certificates.Authority {
	c.t.Helper()
	ca, err := certificates.ReadAuthority(c.pki(), "ca", time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	return ca
}

func (c *cluster) pki() string { return filepath.Join(c.dir, "pki") }

// waitRenewed waits until the renewal of certificates of that name has ended well.
func (o *operator) waitRenewed(name string) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, name+" is renewed", func() (bool, string) {
		for _, event := range o.events() {
			if event.Type == journal.TypeActionEnded && strings.HasPrefix(event.Action, "renew-"+name) {
				return strings.Contains(string(event.Payload), `"done"`), string(event.Payload)
			}
		}
		return false, o.mustEkco("certificates")
	})
}

// facts are those that a renewal keeps.
func kept(t *testing.T, pem []byte) journal.Certificate {
	t.Helper()
	chain, err := certificates.File{Name: "a certificate", Content: pem}.Chain()
	if err != nil {
		t.Fatal(err)
	}
	facts := certificates.Facts("", chain[0])
	facts.Serial, facts.Fingerprint, facts.NotBefore, facts.NotAfter = "", "", time.Time{}, time.Time{}
	return facts
}

func TestTheRegistryServesItsNewCertificateAfterARestart(t *testing.T) {
	t.Parallel()
	c, o := newCertificates(t)
	crt, key := certificatestest.Serving(t, c.ca(), "registry.kurl.svc.cluster.local", time.Now().Add(time.Hour), "registry", "registry.kurl.svc.cluster.local")
	c.addSecret("kurl", "registry-pki", map[string][]byte{"registry.crt": crt, "registry.key": key})
	s := c.registry()
	s.start()
	pod := s.addPod()
	o.startReady()
	eventually(t, await.HangTimeout, "the pod with the old certificate is deleted", func() (bool, string) {
		_, err := c.client.CoreV1().Pods("kurl").Get(t.Context(), pod, metav1.GetOptions{})
		return apierrors.IsNotFound(err), o.mustEkco("certificates")
	})
	if s.served() != string(crt) {
		t.Error("the registry serves another certificate before its pod was replaced")
	}
	s.start()
	s.addPod()
	o.waitRenewed("registry")
	renewed := c.data("kurl", "registry-pki")
	if diff := cmp.Diff(kept(t, crt), kept(t, renewed["registry.crt"])); diff != "" {
		t.Error(diff)
	}
	c.judge(s, filepath.Join(c.pki(), "ca.crt"), "registry.kurl.svc.cluster.local", renewed["registry.crt"], renewed["registry.key"])
}

// judge has openssl judge what a server serves, and what its Secret holds.
func (c *cluster) judge(s *server, ca, name string, crt, key []byte) {
	c.t.Helper()
	dir := c.t.TempDir()
	certificate, private := filepath.Join(dir, "crt.pem"), filepath.Join(dir, "key.pem")
	c.write(certificate, string(crt))
	c.write(private, string(key))
	openssl(c.t, "verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", name, "-CAfile", ca, certificate)
	openssl(c.t, "x509", "-noout", "-checkend", "31449600", "-in", certificate) // 364 days
	openssl(c.t, "pkey", "-noout", "-check", "-in", private)
	if public := openssl(c.t, "pkey", "-pubout", "-in", private); public != openssl(c.t, "x509", "-noout", "-pubkey", "-in", certificate) {
		c.t.Error("the key is not the certificate's")
	}
	// One that wants a certificate in return says so only after the handshake, and is shown the same.
	openssl(c.t, "s_client", "-connect", s.endpoint(), "-servername", name, "-verify_hostname", name, "-verify_return_error", "-CAfile", ca,
		"-cert", certificate, "-key", private)
	if served := s.served(); !bytes.HasPrefix(crt, []byte(served)) {
		c.t.Errorf("it serves\n%s", served)
	}
}

func TestTheKURLProxyServesItsNewCertificate(t *testing.T) {
	t.Parallel()
	c, o := newCertificates(t)
	const name, secret = certificates.KurlProxyHost, "kotsadm-tls"
	own := certificatestest.CA(t, name+"-ca@1700000000", time.Now().Add(certificates.Year))
	crt, key := certificatestest.Pair(t, own, name+"@1700000000", time.Now().Add(100*24*time.Hour), name, "kotsadm")
	c.addSecret("default", secret, map[string][]byte{"tls.crt": crt, "tls.key": key})
	s := c.proxy("default", "kurl-proxy-kotsadm", secret, 8800, "")
	s.start()
	s.addPod()
	running := o.startReady()
	o.waitCertificate("kurl-proxy", "Valid")
	by := child.Start(t, binaries.ekco, "rotate-kotsadm-certs", "--reason", "tried", "--journal", o.journal, "--config", o.config)
	eventually(t, await.HangTimeout, "the Secret has another certificate", func() (bool, string) {
		return !bytes.Equal(c.data("default", secret)["tls.crt"], crt), by.Output.Tail(500)
	})
	s.start() // it reads it again by itself
	if code := by.Wait(await.HangTimeout); code != 0 {
		t.Errorf("rotate-kotsadm-certs exits with %d:\n%s", code, by.Output.String())
	}
	t.Log(by.Output.String())
	renewed := c.data("default", secret)
	chain, err := certificates.File{Name: "chain", Content: renewed["tls.crt"]}.Chain()
	if err != nil || len(chain) != 2 {
		t.Fatalf("%v: %d certificates", err, len(chain))
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	c.write(ca, string(certificates.EncodeChain(chain[1])))
	c.judge(s, ca, name, renewed["tls.crt"], renewed["tls.key"])
	if again := o.mustEkco("rotate-kotsadm-certs"); strings.Contains(again, "ended") || !bytes.Equal(c.data("default", secret)["tls.crt"], renewed["tls.crt"]) {
		t.Errorf("a second time it renews it again:\n%s", again)
	}
	running.Stop(await.HangTimeout)
}

func TestContourAndEnvoyTrustEachOtherAgain(t *testing.T) {
	t.Parallel()
	c, o := newCertificates(t)
	c.kubectl("apply", "-f", "testdata/envoy.yaml")
	ca := certificatestest.CA(t, "Project Contour", time.Now().Add(time.Hour))
	for secret, name := range map[string]string{"contourcert": "contour", "envoycert": "envoy"} {
		crt, key := certificatestest.Pair(t, ca, name, time.Now().Add(time.Hour), name)
		c.addSecret(contourNamespace, secret, map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": certificates.EncodeChain(ca.Certificate)})
	}
	before := c.data(contourNamespace, "contourcert")
	s := c.proxy(contourNamespace, "contour", "contourcert", 8001, "verify required ca-file DIR/ca.crt")
	s.start()
	s.addPod()
	o.startReady()
	eventually(t, await.HangTimeout, "both Secrets have other certificates", func() (bool, string) {
		contour, envoy := c.data(contourNamespace, "contourcert"), c.data(contourNamespace, "envoycert")
		return !bytes.Equal(contour["tls.crt"], before["tls.crt"]) && bytes.Equal(contour["ca.crt"], envoy["ca.crt"]), ""
	})
	s.start()
	o.waitRenewed("contour")
	renewed, envoy := c.data(contourNamespace, "contourcert"), c.data(contourNamespace, "envoycert")
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca": envoy["ca.crt"], "crt": envoy["tls.crt"], "key": envoy["tls.key"]} {
		c.write(filepath.Join(dir, name), string(content))
	}
	// Envoy's certificate is for clients too in a cluster; what is judged is who signed it.
	openssl(t, "verify", "-CAfile", filepath.Join(dir, "ca"), filepath.Join(dir, "crt"))
	c.judge(s, filepath.Join(dir, "ca"), "contour", renewed["tls.crt"], renewed["tls.key"])
	openssl(t, "s_client", "-connect", s.endpoint(), "-CAfile", filepath.Join(dir, "ca"), "-cert", filepath.Join(dir, "crt"), "-key", filepath.Join(dir, "key"), "-verify_return_error")
	if restarted := c.kubectl("-n", contourNamespace, "get", "daemonset", "envoy", "-o", "jsonpath={.spec.template.metadata.annotations}"); !strings.Contains(restarted, "restartedAt") {
		t.Errorf("Envoy was not restarted: %s", restarted)
	}
}

func newCertificates(t *testing.T) (*cluster, *operator) {
	t.Helper()
	c := startCluster(t)
	c.applyShippedRBAC()
	return c, newOperator(t, c.kubeconfigFor("kurl/ekco", nil), map[string]string{"certificates_dir": c.pki(), "restart_failed_envoy_pods": "false", "rotate_certs": "true"})
}

func (o *operator) waitCertificate(name string, want journal.State) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, name+" is "+string(want), func() (bool, string) {
		for _, thing := range o.status().Things {
			if thing.Machine == fsmcertificates.Machine && thing.Name == name {
				return thing.State == want, string(thing.State)
			}
		}
		return false, "unknown"
	})
}
