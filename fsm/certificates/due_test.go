package certificates

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestDueIsWhatHasTheTimeOrLessLeftAndIsNotNew(t *testing.T) {
	made := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		at, ttl    time.Duration
		due, asked bool
	}{
		{at: 59 * time.Hour, ttl: 30 * time.Hour},
		{at: 60 * time.Hour, ttl: 30 * time.Hour, due: true},
		{at: 100 * time.Hour, ttl: 30 * time.Hour, due: true},
		{at: 0, ttl: 1000 * time.Hour},
		{at: 29 * time.Hour, ttl: 1000 * time.Hour},
		{at: 30 * time.Hour, ttl: 1000 * time.Hour, due: true},
		{at: 0, ttl: 1000 * time.Hour, due: true, asked: true},
		{at: 0, ttl: 89 * time.Hour, asked: true},
	} {
		if IsDue(made, made.Add(90*time.Hour), made.Add(test.at), test.ttl, test.asked) != test.due {
			t.Errorf("%+v is not so", test)
		}
	}
}

// TestChangedRenewalTimeCountsAtOnce: nothing is observed after the change.
func TestChangedRenewalTimeCountsAtOnce(t *testing.T) {
	within := func(w *world, ttl time.Duration) {
		w.P = w.P.With(Machine, Policy{Renew: true, Every: 24 * time.Hour, TTL: ttl})
	}
	w := newPrimaries(t)
	w.observe(registry, w.facts(50*day, nil))
	w.observe(p1, w.on(0, nil))
	w.looks(p1, "were not read yet", w.on(50*day, nil))
	w.wants(registry, false)
	if w.openOn(p1, journal.ActionRenewControlPlane) != nil || w.state(registry) != Valid || w.state(p1) != Valid {
		t.Fatal("they are renewed before their time")
	}
	within(w, 60*day)
	onPrimary := w.openOn(p1, journal.ActionRenewControlPlane)
	if w.wants(registry, true); onPrimary == nil {
		t.Fatal("those of the control plane are not renewed")
	}
	within(w, 40*day)
	for _, rec := range []*journal.ActionRecord{w.wants(registry, true), w.openOn(p1, journal.ActionRenewControlPlane)} {
		if rec == nil || rec.Cancelling == nil {
			t.Errorf("it goes on: %+v", rec)
		}
	}
}

// TestRequestedRenewalIsNotCancelled: an administrator asked for it, due or not.
func TestRequestedRenewalIsNotCancelled(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(100*day, nil))
	w.Write(journal.Draft{Type: journal.TypeActionRequested, Subject: registry, Action: "renew-registry-9", Actor: "cli:root@p1", Payload: journal.ActionRequested{
		Kind: journal.ActionRenewCertificate, Manual: true, Input: journal.CertificateInput{TTL: journal.Duration(200 * day)},
	}})
	if rec := w.wants(registry, true); rec.Cancelling != nil {
		t.Errorf("it is cancelled: %s", rec.Cancelling.Reason)
	}
}

// TestCommandWithoutOperatorCancelsNoRenewal: its rotate_certs_ttl may not be the operator's.
func TestCommandWithoutOperatorCancelsNoRenewal(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(20*day, nil))
	w.wants(registry, true)
	w.P = w.P.With(Machine, Policy{Renew: true, TTL: day})
	w.P.Passive = true
	if rec := w.wants(registry, true); rec.Cancelling != nil {
		t.Errorf("it is cancelled: %s", rec.Cancelling.Reason)
	}
}

func TestCertificatesBecomeDueWithoutNewFacts(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(31*day, nil))
	w.wants(registry, false)
	w.Pass(2 * day)
	w.wants(registry, true)
}

// TestRecordedVerdictIsKept: earlier versions recorded it with the facts, from which nobody could tell it now.
func TestRecordedVerdictIsKept(t *testing.T) {
	for recorded, want := range map[string]journal.State{
		`{"certificates":[{"at":"x","subject":"","issuer":"","key":"","serial":"","not_before":"2026-01-01T00:00:00Z","not_after":"2099-01-01T00:00:00Z","fingerprint":""}],"due":true,"why":"the primary has a better one"}`: Renewing,
		`{"certificates":[{"at":"x","subject":"","issuer":"","key":"","serial":"","not_before":"2026-01-01T00:00:00Z","not_after":"2026-01-02T00:00:00Z","fingerprint":""}]}`:                                                 Valid,
	} {
		w := newWorld(t)
		w.Write(journal.Draft{Type: journal.TypeThingObserved, Subject: registry, Payload: journal.ThingObserved{Machine: Machine, Facts: []byte(recorded)}})
		if got := w.state(registry); got != want {
			t.Errorf("of %s it is %s, want %s", recorded, got, want)
		}
		if rec := w.Open(registry); rec != nil && rec.Request.Reason != "registry: the primary has a better one" {
			t.Errorf("because %s", rec.Request.Reason)
		}
	}
}

func TestNothingIsDueByAWrongClockOfThePrimary(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	w.looks(p1, "were not read yet", w.on(5*day, func(f *journal.CertificateFacts) { f.Unreadable, f.On.ClockAhead = "x", journal.Duration(time.Hour) }))
	if rec := w.openOn(p1, journal.ActionRenewControlPlane); rec != nil || w.state(p1) != Unreadable {
		t.Errorf("it is %s: %+v", w.state(p1), rec)
	}
}

func TestACopyIsDueOnceItsOriginalIsBetter(t *testing.T) {
	for _, test := range []struct {
		original journal.CertificateOriginal
		longer   time.Duration
		due      bool
	}{
		{original: journal.CertificateOriginal{Fingerprint: "copy", Signed: true}, longer: 100 * day},
		{original: journal.CertificateOriginal{Signed: true, CopySigned: true}, longer: day},
		{original: journal.CertificateOriginal{Signed: true, CopySigned: true}, longer: day + time.Second, due: true},
		{original: journal.CertificateOriginal{Signed: true}, due: true},
		{original: journal.CertificateOriginal{}},
	} {
		w := newWorld(t)
		facts := w.facts(day, func(f *journal.CertificateFacts) {
			f.Certificates = f.Certificates[:1]
			f.Certificates[0].Fingerprint = "copy"
			test.original.NotAfter = f.Certificates[0].NotAfter.Add(test.longer)
			f.Original = &test.original
		})
		w.observe(journal.CertificateKubeletClient, facts)
		w.wants(journal.CertificateKubeletClient, test.due)
	}
}

func TestWhatIsAskedForIsDueUntilItIsRenewed(t *testing.T) {
	w := newWorld(t)
	ends := w.Now.Add(300 * day).Truncate(time.Second)
	year := journal.CertificateInput{Ends: ends, TTL: journal.Duration(365 * day)}
	for name, test := range map[string]struct {
		change func(*journal.CertificateFacts)
		input  journal.CertificateInput
		due    bool
	}{
		"asked for":        {input: year, due: true},
		"not asked for":    {},
		"not soon enough":  {input: journal.CertificateInput{Ends: ends, TTL: journal.Duration(299 * day)}},
		"renewed since":    {input: journal.CertificateInput{Ends: ends.Add(-time.Hour), TTL: year.TTL}},
		"a customer's own": {change: func(f *journal.CertificateFacts) { f.Foreign = true }, input: year},
		"unreadable":       {change: func(f *journal.CertificateFacts) { f.Unreadable = "x" }, input: year},
		"nothing there":    {change: func(f *journal.CertificateFacts) { f.Certificates = nil }, input: year},
	} {
		facts := w.facts(300*day, func(f *journal.CertificateFacts) {
			for i := range f.Certificates {
				f.Certificates[i].NotBefore = w.Now
			}
			if test.change != nil {
				test.change(f)
			}
		})
		if why, due := (Policy{TTL: 30 * day}).Due(facts, test.input, w.Now); due != test.due || due != (why != "") {
			t.Errorf("%s: it is due: %t, because %q", name, due, why)
		}
	}
}
