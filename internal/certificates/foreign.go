package certificates

import (
	"crypto/x509"
	"strings"
)

// KurlProxyHost is the prefix of the common names that kURL generates for its proxy.
const KurlProxyHost = "kotsadm.default.svc.cluster.local"

// Foreign reports whether the proxy's certificate is a customer's own, which EKCO never changes: it does not have
// the names that kURL generates.
func Foreign(certificate *x509.Certificate) bool {
	issuer, subject := certificate.Issuer.CommonName, certificate.Subject.CommonName
	generated := (issuer == "" || strings.HasPrefix(issuer, KurlProxyHost)) && strings.HasPrefix(subject, KurlProxyHost)
	return !generated
}
