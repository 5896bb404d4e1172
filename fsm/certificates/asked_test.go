package certificates

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func (w *world) asks(name, input string) (fsm.Admission, error) {
	return fsm.Admit(w.S, policy(), w.Now, fsm.Request{Kind: journal.ActionRenewCertificate, Name: name, Actor: "cli:root@p1", Input: json.RawMessage(input)})
}

func TestAPersonHasWhatExpiresWithinATimeRenewed(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(100*day, nil))
	request, err := Request(registry.Name, 180*day, "cli:root@p1", "")
	if err != nil {
		t.Fatal(err)
	}
	admitted, err := fsm.Admit(w.S, policy(), w.Now, request)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(admitted.Events...)
	rec := w.wants(registry, true) // it is not obsolete for not being due
	if input, err := journal.InputOf[journal.CertificateInput](rec.Request); err != nil || time.Duration(input.TTL) != 180*day || input.Ends.IsZero() || rec.ID != admitted.Action {
		t.Errorf("%v: asked for is %+v", err, rec.Request)
	}
}

func TestNothingIsRenewedThatExpiresAfterTTL(t *testing.T) {
	for ttl, due := range map[string]bool{"2399h": false, "2400h": true} {
		w := newWorld(t)
		w.observe(registry, w.facts(100*day, nil))
		w.Now = w.Now.Truncate(time.Second)
		admitted, err := w.asks(registry.Name, `{"ttl":"`+ttl+`"}`)
		if err != nil || admitted.AlreadyDone == due || (admitted.Message == "") != due || (len(admitted.Events) > 0) != due {
			t.Errorf("within %s: %v, %+v", ttl, err, admitted)
		}
	}
}

// TestAnUnchangedCertificateIsNotCalledRenewed: only one that expires at another time is.
func TestAnUnchangedCertificateIsNotCalledRenewed(t *testing.T) {
	for _, longer := range []time.Duration{0, 300 * day} {
		w := newWorld(t)
		facts := w.facts(day, nil)
		w.observe(registry, facts)
		rec := w.wants(registry, true)
		w.Play(rec, journal.StepRenewCertificate, journal.CertificateRenewed{Certificates: w.facts(day+longer, nil).Certificates})
		w.End(rec, journal.OutcomeDone)
		if at := of(w.S.Things[fsm.Key(registry)]).RenewedAt; at.IsZero() != (longer == 0) {
			t.Errorf("valid for %s longer, it was renewed at %s", longer, at)
		}
	}
}

// TestARenewalOfUnknownOutcomeIsRemembered: nobody can tell that it left what there was before.
func TestARenewalOfUnknownOutcomeIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(day, nil))
	rec := w.wants(registry, true)
	w.Play(rec, journal.StepRenewCertificate, []string{"?"})
	w.End(rec, journal.OutcomeDone)
	if at := of(w.S.Things[fsm.Key(registry)]).RenewedAt; at.IsZero() {
		t.Error("it is not called renewed")
	}
}

func TestAPersonIsRefusedWhatEKCODoesNotRenew(t *testing.T) {
	w := newWorld(t)
	w.observe(ca, w.facts(100*day, func(f *journal.CertificateFacts) { f.Unrenewed = "EKCO does not renew CAs" }))
	w.observe(registry, w.facts(100*day, func(f *journal.CertificateFacts) { f.Unreadable = "it is empty" }))
	w.observe(journal.CertificateKurlProxy, w.facts(100*day, nil))
	for _, test := range []struct{ name, input, rule, reason string }{
		{ca.Name, `{"ttl":"24h"}`, RuleRenewable, "EKCO does not renew CAs"},
		{registry.Name, ``, RuleRenewable, "it is empty"},
		{"kurl-proxy", `{"ttl":"-1h"}`, fsm.RuleInput, "ttl is -1h0m0s; it must be more than 0"},
		{"kurl-proxy", `{"ttl":"soon"}`, fsm.RuleInput, `read the request to renew kurl-proxy: time: invalid duration "soon"`},
	} {
		admitted, err := w.asks(test.name, test.input)
		refused, is := errors.AsType[*fsm.RefusedError](err)
		if !is || refused.Rule != test.rule || refused.Reason != test.reason || len(admitted.Events) != 1 || admitted.Events[0].Type != journal.TypeActionRefused {
			t.Errorf("%s %s: %v, %+v", test.name, test.input, err, admitted)
		}
	}
}

func TestWithoutATimeWhatIsValidIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(300*day, nil))
	if admitted, err := w.asks(registry.Name, ""); err != nil || admitted.AlreadyDone {
		t.Errorf("%v: %+v", err, admitted)
	}
}
