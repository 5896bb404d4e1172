package certificates

import (
	"cmp"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// attentionWithin is how long before its expiry a certificate needs a person. If EKCO manages the certificate, it
// should have renewed it long before.
const attentionWithin = 14 * 24 * time.Hour

// NeedsPerson implements [fsm.Machine]. A certificate that expires soon needs a person.
func (machine) NeedsPerson(t *fsm.Thing, now time.Time) (reason, advice string) {
	facts := of(t).Facts
	first, expires := expiresSoon(t.Name, facts, now)
	if !expires {
		return "", ""
	}
	when := "expires at "
	if !now.Before(first.NotAfter) {
		when = "expired at "
	}
	return fmt.Sprintf("the certificate in %s %s%s%s", first.At, when, fsm.Stamp(first.NotAfter), words.Because(cmp.Or(facts.Unreadable, facts.Unrenewed))),
		"run \"ekco certificates\" to see who renews it, or what blocks its renewal"
}

// expiresSoon returns the certificate that expires first, if it expires within attentionWithin. If less, the limit is a
// third of the certificate's validity, or a tenth for a kubelet's certificate, because a kubelet requests a new one
// before that.
func expiresSoon(name string, facts journal.CertificateFacts, now time.Time) (first journal.Certificate, expires bool) {
	divisor := time.Duration(3)
	if _, is := journal.KubeletOn(journal.Subject{Kind: journal.KindCertificate, Name: name}); is {
		divisor = 10
	}
	for _, certificate := range facts.Certificates {
		from := certificate.NotAfter.Add(-min(attentionWithin, certificate.NotAfter.Sub(certificate.NotBefore)/divisor))
		if !now.Before(from) && (!expires || certificate.NotAfter.Before(first.NotAfter)) {
			first, expires = certificate, true
		}
	}
	return first, expires
}
