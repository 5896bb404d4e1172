package certificates

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
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
		if first, is := expiresSoon(test.of, facts, now); is != test.want || is && first.At != "it" {
			t.Errorf("%s: %v, %s", name, is, first.At)
		}
	}
}

func TestAThingWithACertificateThatExpiresSoonNeedsAPerson(t *testing.T) {
	j := newWorld(t)
	j.Observe(Machine, journal.CertificateRegistry, journal.CertificateFacts{Certificates: []journal.Certificate{{At: "Secret kurl/registry-pki", NotBefore: j.Now.Add(-300 * day), NotAfter: j.Now.Add(14 * day)}}})
	thing := j.S.Things[fsm.Key(journal.CertificateRegistry)]
	if reason, advice := thing.NeedsPerson(j.Now); !strings.Contains(reason, "expires at") || advice == "" {
		t.Errorf("%q, %q", reason, advice)
	}
	if reason, _ := thing.NeedsPerson(j.Now.Add(15 * day)); !strings.Contains(reason, "expired at") {
		t.Errorf("%q", reason)
	}
	if reason, _ := thing.NeedsPerson(j.Now.Add(-day)); reason != "" {
		t.Errorf("%q", reason)
	}
}

// TestWhatCannotBeReadNeedsAPersonAfterADay: of what cannot be read nobody knows when it expires.
func TestWhatCannotBeReadNeedsAPersonAfterADay(t *testing.T) {
	const why = "read /etc/kubernetes/pki: it is a symbolic link to /data/pki, which EKCO cannot read"
	for _, of := range []journal.Subject{p1, registry, ca} {
		w := newPrimaries(t)
		broken := journal.CertificateFacts{Unreadable: why}
		if of == p1 {
			broken = w.on(300*day, func(f *journal.CertificateFacts) { f.Unreadable = why })
		}
		needs := func(person bool) {
			t.Helper()
			reason, advice := w.S.Things[fsm.Key(of)].NeedsPerson(w.Now)
			if state := w.state(of); state != Unreadable || person != (reason == why) || person != (advice != "") {
				t.Errorf("%s is %s; a person is needed because %q: %q", of.Name, state, reason, advice)
			}
		}
		w.observe(of, broken)
		w.Decide()
		needs(false)
		w.Pass(day - time.Second)
		w.observe(of, broken)
		needs(false)
		w.Pass(time.Second)
		needs(true)
		w.observe(of, w.on(300*day, nil))
		if reason, _ := w.S.Things[fsm.Key(of)].NeedsPerson(w.Now); reason != "" {
			t.Errorf("%s needs a person after it was repaired: %q", of.Name, reason)
		}
	}
}

func TestOfSeveralThatExpireTheFirstIsNamed(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one := func(at string, left time.Duration) journal.Certificate {
		return journal.Certificate{At: at, NotBefore: now.Add(-365 * day), NotAfter: now.Add(left)}
	}
	facts := journal.CertificateFacts{Certificates: []journal.Certificate{one("second", 2*day), one("first", day), one("third", 3*day)}}
	if first, expires := expiresSoon("registry", facts, now); !expires || first.At != "first" {
		t.Errorf("%v: %+v", expires, first)
	}
}
