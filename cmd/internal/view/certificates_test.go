package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/journal"
)

// certified is a status with certificates of every sort.
func certified(t *testing.T) api.Status {
	t.Helper()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	thing := func(name string, state journal.State, change func(*fsmcertificates.Facts), left ...time.Duration) api.ThingStatus {
		var facts fsmcertificates.Facts
		for _, left := range left {
			facts.Certificates = append(facts.Certificates, journal.Certificate{At: "Secret kurl/" + name, Subject: "CN=" + name, NotAfter: now.Add(left)})
		}
		if change != nil {
			change(&facts)
		}
		raw, err := json.Marshal(facts)
		if err != nil {
			t.Fatal(err)
		}
		return api.ThingStatus{Machine: fsmcertificates.Machine, Name: name, State: state, Facts: raw}
	}
	const day = 24 * time.Hour
	about := func(name string) journal.Subject { return journal.Subject{Kind: journal.KindCertificate, Name: name} }
	return api.Status{
		Now: now,
		Things: []api.ThingStatus{
			thing("contour", fsmcertificates.Valid, func(f *fsmcertificates.Facts) { f.RenewedAt, f.RenewedBy = now.Add(-day), "renew-contour-7" }, 100*day, 364*day),
			thing("kurl-proxy", fsmcertificates.Foreign, func(f *fsmcertificates.Facts) { f.Unrenewed = "it is the customer's own" }, 36*time.Hour),
			thing("registry", fsmcertificates.Renewing, nil, -time.Hour),
			thing("paused", fsmcertificates.Due, nil, 20*day),
			thing("soon", fsmcertificates.Due, nil, 21*day),
			thing("other", fsmcertificates.Unreadable, func(f *fsmcertificates.Facts) { f.Unreadable = "it is\x1b[31m broken" }),
			{Machine: fsmcertificates.Machine, Name: "removed", State: fsmcertificates.Absent, Gone: true},
			{Machine: "minio", Name: "minio"},
		},
		Actions: []journal.ActionRecord{{
			ID: "renew-registry-9", Subject: about("registry"),
			Holds: map[string]journal.ActionHeld{"renew": {Reason: "the CA is external"}},
		}},
		Refusals: []fsm.Refusal{{Subject: about("paused"), Rule: fsm.RulePaused, Reason: "paused by root"}},
		Next:     []fsm.Upcoming{{Subject: about("soon"), Why: "EKCO settles"}},
	}
}

func TestTheCertificateThatExpiresFirstIsOnTop(t *testing.T) {
	var out strings.Builder
	if err := Certificates(&out, certified(t), "table", false); err != nil {
		t.Fatal(err)
	}
	want := `NAME        CERTIFICATE             EXPIRES               LEFT   STATE       NOTES
other       -                       -                     -      Unreadable  it is\x1b[31m broken
registry    Secret kurl/registry    2026-11-23T11:00:00Z  -1 d   Renewing    renew-registry-9 waits: the CA is external
kurl-proxy  Secret kurl/kurl-proxy  2026-11-25T00:00:00Z  1 d    Foreign     it is the customer's own
paused      Secret kurl/paused      2026-12-13T12:00:00Z  20 d   Due         Paused: paused by root
soon        Secret kurl/soon        2026-12-14T12:00:00Z  21 d   Due         EKCO settles
contour     Secret kurl/contour     2027-03-03T12:00:00Z  100 d  Valid       renewed at 2026-11-22T12:00:00Z by renew-contour-7
contour     Secret kurl/contour     2027-11-22T12:00:00Z  364 d  Valid       renewed at 2026-11-22T12:00:00Z by renew-contour-7
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	var painted strings.Builder
	if err := Certificates(&painted, certified(t), "table", true); err != nil || strings.Count(painted.String(), "\x1b[31m") != 2 || strings.Count(painted.String(), "\x1b[33m") != 2 {
		t.Errorf("%v:\n%q", err, painted.String())
	}
}

func TestCertificatesForPrograms(t *testing.T) {
	var out strings.Builder
	if err := Certificates(&out, certified(t), "json", false); err != nil {
		t.Fatal(err)
	}
	var shown []CertificateView
	if err := json.Unmarshal([]byte(out.String()), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown) != 7 || shown[1].Name != "registry" || shown[1].DaysLeft != -1 || shown[1].Certificate.Subject != "CN=registry" || shown[0].Certificate != nil || shown[5].RenewedBy != "renew-contour-7" {
		t.Errorf("shown is %s", out.String())
	}
	out.Reset()
	if err := Certificates(&out, api.Status{}, "json", false); err != nil || out.String() != "[]\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	out.Reset()
	if err := Certificates(&out, api.Status{}, "table", false); err != nil || out.String() != "EKCO has seen no certificate yet\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}
