package secrets

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// write sets a pair in its Secret.
func (h stored) write(key crypto.Signer, chain ...*x509.Certificate) error {
	encoded, err := certificates.EncodeKey(key)
	if err != nil {
		return err
	}
	h.secret.set(h.of.certificate, certificates.EncodeChain(chain...))
	h.secret.set(h.of.key, encoded)
	return nil
}

// registry is the registry's certificate. The cluster's CA signs it.
type registry struct{ options Options }

func (r registry) secrets() []secretOf {
	return []secretOf{{ref: r.options.Registry, certificate: "registry.crt", key: "registry.key", most: 1}}
}

func (registry) foreign([]stored) bool         { return false }
func (registry) inconsistency([]stored) string { return "" }

func (registry) original([]stored) (*journal.CertificateOriginal, error) { return nil, nil }

func (r registry) ready(_ context.Context, held []stored, now time.Time) error {
	_, err := r.authority(held, now)
	return err
}

// authority returns the cluster's CA. It returns an error unless the CA, or another CA in ca.crt, has signed the
// certificate, and the certificate is only for servers. Clients trust all CAs in ca.crt while the CA is being replaced.
// Without this check, any client with access to the Secret could write a subject and names that EKCO would sign.
func (r registry) authority(held []stored, now time.Time) (certificates.Authority, error) {
	ca, err := r.options.Authority(now)
	if err != nil {
		return ca, err
	}
	const otherwise = "so EKCO does not sign a new one with the cluster's CA; run kURL's installer again, which recreates it"
	name, old := held[0].secret.file(held[0].of.certificate).Name, held[0].chain[0]
	ca = ca.For(old, now)
	switch servers := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}; {
	case !certificates.SignedBy(old, ca.Certificate) && !ca.SignedByOther(old):
		return ca, fmt.Errorf("the cluster's CA has not signed the certificate in %s, %s", name, otherwise)
	case old.IsCA, len(old.UnknownExtKeyUsage) > 0, !slices.Equal(old.ExtKeyUsage, servers):
		return ca, fmt.Errorf("the certificate in %s is not only for servers, %s", name, otherwise)
	}
	return ca, nil
}

func (r registry) renew(held []stored, renewal certificates.Renewal) error {
	ca, err := r.authority(held, renewal.Now)
	if err != nil {
		return err
	}
	certificate, key, err := certificates.Renew(held[0].chain[0], ca, renewal)
	if err != nil {
		return err
	}
	return held[0].write(key, certificate)
}

func (r registry) servers() servers {
	return servers{
		what: "the registry", pods: podRef(r.options.Registry.Namespace), label: "app", value: "registry", port: 443,
		restart: restartPods, served: 0,
	}
}

// kurlProxy is the proxy's certificate. It has its own CA, unless a customer has replaced the certificate.
type kurlProxy struct{ options Options }

func (p kurlProxy) secrets() []secretOf {
	return []secretOf{{ref: p.options.KurlProxy, certificate: "tls.crt", key: "tls.key", most: 10}}
}

func (kurlProxy) foreign(held []stored) bool {
	chain := held[0].chain
	return len(chain) > 0 && certificates.Foreign(chain[0])
}

func (kurlProxy) inconsistency([]stored) string { return "" }

func (kurlProxy) original([]stored) (*journal.CertificateOriginal, error) { return nil, nil }

func (kurlProxy) ready(context.Context, []stored, time.Time) error { return nil }

func (kurlProxy) renew(held []stored, renewal certificates.Renewal) error {
	chain, key, err := certificates.SelfSigned(held[0].chain[0], certificates.KurlProxyHost, renewal)
	if err != nil {
		return err
	}
	return held[0].write(key, chain...)
}

// The proxy reads its Secret again when it changes.
func (p kurlProxy) servers() servers {
	return servers{
		what: "the kURL proxy", pods: podRef(p.options.KurlProxy.Namespace), label: "app", value: "kurl-proxy-kotsadm", port: 8800,
	}
}

// contour is the certificates of Contour and Envoy. One CA has signed both, so that each trusts the other. The CA's key
// is discarded.
type contour struct{ options Options }

func (c contour) secrets() []secretOf {
	pair := secretOf{certificate: "tls.crt", key: "tls.key", ca: "ca.crt", most: 1}
	ofContour, ofEnvoy := pair, pair
	ofContour.ref, ofEnvoy.ref = c.options.Contour, c.options.Envoy
	return []secretOf{ofContour, ofEnvoy}
}

func (contour) foreign([]stored) bool { return false }

func (contour) original([]stored) (*journal.CertificateOriginal, error) { return nil, nil }

func (contour) ready(context.Context, []stored, time.Time) error { return nil }

// inconsistency returns a text about a certificate that the other side does not accept, or "".
func (contour) inconsistency(held []stored) string {
	for i, h := range held {
		other := held[1-i]
		if !certificates.SignedBy(h.chain[0], other.ca) {
			return fmt.Sprintf("the certificate in %s is not signed by the CA in %s", called(h.of.ref), called(other.of.ref))
		}
	}
	return ""
}

func (contour) renew(held []stored, renewal certificates.Renewal) error {
	ca, err := certificates.RenewCA(held[0].ca, renewal)
	if err != nil {
		return err
	}
	for _, h := range held {
		certificate, key, err := certificates.Renew(h.chain[0], ca, renewal)
		if err != nil {
			return err
		}
		if err := h.write(key, certificate); err != nil {
			return err
		}
		h.secret.set(h.of.ca, certificates.EncodeChain(ca.Certificate))
	}
	return nil
}

// Contour loads a new certificate automatically, but Envoy only at a restart. EKCO checks only the served certificate
// of Contour, because Envoy is a client.
func (c contour) servers() servers {
	namespace := c.options.Contour.Namespace
	return servers{
		what: "Contour", pods: podRef(namespace), label: "app", value: "contour", port: 8001,
		restart: restartDaemonSet, daemon: "envoy",
		daemons: kube.Ref{Group: "apps", Version: "v1", Resource: "daemonsets", Namespace: namespace, Name: "envoy"},
	}
}

func podRef(namespace string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: namespace}
}
