package certificates

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// IsDue reports whether the remaining validity of a certificate is ttl or less. Unless an administrator gave ttl
// (asked), IsDue uses at most two thirds of the whole validity, so that a new certificate is never due.
func IsDue(notBefore, notAfter, now time.Time, ttl time.Duration, asked bool) bool {
	if life := notAfter.Sub(notBefore); !asked {
		ttl = min(ttl, life/3*2)
	}
	return !now.Before(notAfter.Add(-ttl))
}

// Due reports whether the certificates must be renewed, and why. input is the input of the renewal, or zero. If an
// administrator gave a TTL in the input, even new certificates can be due. This ends when the first expiry differs from
// the one at the request, because the certificates were renewed then. The new expiry may be earlier: EKCO's
// certificates are valid for only a year.
func (p Policy) Due(facts journal.CertificateFacts, input journal.CertificateInput, now time.Time) (why string, due bool) {
	switch {
	case facts.Version < journal.CertificateFactsVersion:
		return facts.RecordedWhy, facts.RecordedDue
	case facts.Foreign, facts.On == nil && facts.Unreadable != "", facts.On != nil && facts.On.ClockAhead != 0:
		return "", false
	case facts.Original != nil && len(facts.Certificates) > 0:
		return isBetter(*facts.Original, facts.Certificates[0])
	}
	ttl := p.TTL
	if input.TTL > 0 {
		ttl = time.Duration(input.TTL)
	}
	asked, end := input.TTL > 0 && facts.Ends().Equal(input.Ends), time.Time{}
	for _, certificate := range facts.Certificates {
		if IsDue(certificate.NotBefore, certificate.NotAfter, now, ttl, asked) && (!due || certificate.NotAfter.Before(end)) {
			due, end = true, certificate.NotAfter
		}
	}
	if due {
		why = "the first certificate expires at " + fsm.Stamp(end) + ", which is within " + ttl.String()
	}
	return why, due
}

// minLonger is how much longer an original must be valid than its copy before EKCO replaces the copy. The primaries
// renew their originals at slightly different times, which is no reason to replace the copy.
const minLonger = 24 * time.Hour

// isBetter reports whether the original must replace its copy, and why.
func isBetter(original journal.CertificateOriginal, copied journal.Certificate) (why string, is bool) {
	has := "the primary has one that expires at " + fsm.Stamp(original.NotAfter)
	switch {
	case original.Fingerprint == copied.Fingerprint:
		return "", false
	case !original.CopySigned && original.Signed:
		return "the cluster's CA has not signed it; " + has, true
	}
	return has, original.NotAfter.Sub(copied.NotAfter) > minLonger
}

// whyDue reports whether the certificates must be renewed according to the settings, and why.
func whyDue(t *fsm.Thing, w *fsm.World) (why string, due bool) {
	p, _ := w.PolicyOf(Machine).(Policy)
	return p.Due(of(t).Facts, journal.CertificateInput{}, w.Now)
}

func renewalDue(t *fsm.Thing, w *fsm.World) bool {
	_, due := whyDue(t, w)
	return due
}

// Outdated implements [fsm.Machine]. A renewal that has not begun ends if the certificates are no longer due. A command
// that runs without an operator cannot decide this, because it does not know the operator's rotate_certs_ttl.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	facts := of(t).Facts
	switch rec.Kind {
	case journal.ActionLookAtCertificates:
		return ""
	case journal.ActionRenewCertificate:
		if input, err := journal.InputOf[journal.CertificateInput](rec.Request); err != nil || input.TTL != 0 || facts.Unreadable != "" {
			return ""
		}
	}
	switch {
	case len(rec.Steps) > 0, t.FactsSeq == 0, w.Policy.Passive, renewalDue(t, w):
		return ""
	case facts.On != nil && facts.On.ClockAhead != 0: // it is unknown whether they are due
		return facts.Unreadable
	}
	return "the certificates need not be renewed any more; the first expires at " + fsm.Stamp(facts.Ends())
}
