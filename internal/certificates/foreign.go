package certificates

import (
	"crypto/x509"
	"strings"
)

// KurlProxyHost is the prefix of the common names that kURL generates for its proxy.
const KurlProxyHost = "kotsadm.default.svc.cluster.local"

// Foreign reports whether a customer has provided the proxy's certificate: it does not have the names that kURL
// generates. EKCO never changes such a certificate.
func Foreign(certificate *x509.Certificate) bool {
	issuer, subject := certificate.Issuer.CommonName, certificate.Subject.CommonName
	generated := (issuer == "" || strings.HasPrefix(issuer, KurlProxyHost)) && strings.HasPrefix(subject, KurlProxyHost)
	return !generated
}
