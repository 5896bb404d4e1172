package certificates

import (
	"crypto/x509"
	"strings"
)

// KurlProxyHost begins the common names of what kURL generates for its proxy.
const KurlProxyHost = "kotsadm.default.svc.cluster.local"

// Foreign reports whether the proxy's certificate is a customer's own, which EKCO never touches:
// one that is not called as kURL calls those that it generates.
func Foreign(certificate *x509.Certificate) bool {
	issuer, subject := certificate.Issuer.CommonName, certificate.Subject.CommonName
	generated := (issuer == "" || strings.HasPrefix(issuer, KurlProxyHost)) && strings.HasPrefix(subject, KurlProxyHost)
	return !generated
}
