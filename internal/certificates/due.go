package certificates

import (
	"crypto/x509"
	"time"
)

// Due reports whether a certificate is to be renewed: what remains of its validity is ttl or
// less. One that was just made is never due, however long ttl is: two thirds of its life are the most.
func Due(certificate *x509.Certificate, now time.Time, ttl time.Duration) bool {
	return !now.Before(DueAt(certificate, ttl))
}

// DueAt returns when that is.
func DueAt(certificate *x509.Certificate, ttl time.Duration) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotAfter.Add(-min(ttl, life/3*2))
}
