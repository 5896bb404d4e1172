package certificates

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestACertificateThatExpiresSoonNeedsAPerson(t *testing.T) {
	now := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		of         string
		life, left time.Duration
		want       bool
	}{
		"15 days":                           {"control-plane/p1", 365 * day, 15 * day, false},
		"14 days":                           {"control-plane/p1", 365 * day, 14 * day, true},
		"expired":                           {"registry", 365 * day, -day, true},
		"a CA":                              {"pki/ca.crt", 3650 * day, 10 * day, true},
		"a week's, fresh":                   {"kurl-proxy", 7 * day, 6 * day, false},
		"a week's, at its end":              {"kurl-proxy", 7 * day, 2 * day, true},
		"a kubelet's of 30 days":            {"kubelet/w1", 30 * day, 4 * day, false},
		"a kubelet's of 30 days at its end": {"kubelet/w1", 30 * day, 3 * day, true},
	} {
		facts := journal.CertificateFacts{Certificates: []journal.Certificate{
			{At: "another", NotBefore: now.Add(-day), NotAfter: now.Add(300 * day)},
			{At: "it", NotBefore: now.Add(test.left - test.life), NotAfter: now.Add(test.left)},
		}}
		first, since, is := NeedsPerson(test.of, facts, now)
		if is != test.want || is && (first.At != "it" || since.After(now)) {
			t.Errorf("%s: %v, %s since %s", name, is, first.At, since)
		}
	}
}
