package certificates

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// attentionWithin is how long before its end a certificate needs a person. EKCO renews its own well before that, so
// something keeps it from doing so.
const attentionWithin = 14 * 24 * time.Hour

// NeedsPerson returns which of the certificates of that name needs a person because it expires soon, and since
// when. Of several it is the one that expires first. Short-lived ones count when less than a third of their validity
// remains, a kubelet's when less than a tenth does: until then it asks for another by itself.
func NeedsPerson(name string, facts journal.CertificateFacts, now time.Time) (first journal.Certificate, since time.Time, needs bool) {
	part := time.Duration(3)
	if _, is := journal.KubeletOn(journal.Subject{Kind: journal.KindCertificate, Name: name}); is {
		part = 10
	}
	for _, one := range facts.Certificates {
		from := one.NotAfter.Add(-min(attentionWithin, one.NotAfter.Sub(one.NotBefore)/part))
		if !now.Before(from) && (!needs || one.NotAfter.Before(first.NotAfter)) {
			first, since, needs = one, from, true
		}
	}
	return first, since, needs
}
