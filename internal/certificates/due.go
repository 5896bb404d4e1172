package certificates

import (
	"crypto/x509"
	"time"
)

// Due reports whether a certificate must be renewed: it expires within ttl. ttl counts for at most two thirds of the
// validity, so a new certificate is never due.
func Due(certificate *x509.Certificate, now time.Time, ttl time.Duration) bool {
	return !now.Before(DueAt(certificate, ttl))
}

// DueAt returns when the certificate becomes due.
func DueAt(certificate *x509.Certificate, ttl time.Duration) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotAfter.Add(-min(ttl, life/3*2))
}
