package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const renewal = "renew-kurl-proxy-8-1b2c"

func renewing(t *testing.T, after ...any) *fakeOperator {
	t.Helper()
	running := &fakeOperator{admitted: api.Admission{Action: renewal}}
	running.past = append(running.past, event(t, 1, renewal, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionRenewCertificate}))
	for i, payload := range after {
		kind := journal.TypeActionEnded
		if _, is := payload.(journal.ActionStalled); is {
			kind = journal.TypeActionStalled
		}
		running.past = append(running.past, event(t, uint64(i)+2, renewal, kind, payload))
	}
	return running
}

func TestTheProxysCertificateIsRenewedByTheOperator(t *testing.T) {
	running := renewing(t, journal.ActionEnded{Outcome: journal.OutcomeDone})
	d := newDesk(t, running)
	d.expect(d.types("rotate-kotsadm-certs"), exitDone, "renew-kurl-proxy-8-1b2c", "")
	d.expect(d.types("rotate-kotsadm-certs", "--ttl", "24h", "--reason", "seen by others"), exitDone, "ended, done", "")
	for i, want := range []time.Duration{180 * 24 * time.Hour, 24 * time.Hour} {
		var input journal.CertificateInput
		asked := running.requests[i]
		if err := json.Unmarshal(asked.Input, &input); err != nil || time.Duration(input.TTL) != want ||
			asked.Kind != journal.ActionRenewCertificate || asked.Name != "kurl-proxy" || asked.Actor == "" {
			t.Errorf("%v: asked for is %+v", err, asked)
		}
	}
	if reason := running.requests[1].Reason; reason != "seen by others" {
		t.Errorf("because %q", reason)
	}
}

func TestNothingDueIsSaidAndIsNoFailure(t *testing.T) {
	d := newDesk(t, &fakeOperator{admitted: api.Admission{AlreadyDone: true, Message: "nothing is due"}})
	d.expect(d.types("rotate-kotsadm-certs", "--ttl", "24h"), exitDone, "nothing is due", "")
}

func TestARenewalThatDoesNotEndWellIsAFailure(t *testing.T) {
	for _, test := range []struct {
		running *fakeOperator
		says    string
	}{
		{renewing(t, journal.ActionEnded{Outcome: journal.OutcomeCancelled, Reason: "somebody did"}), renewal + " has ended with the outcome cancelled: somebody did"},
		{renewing(t, journal.ActionStalled{Reason: "no room"}), "no room; after repairing the cause, run: ekco retry " + renewal},
		{renewing(t), "it has not ended within 10ms; the operator continues it: ekco history --action " + renewal},
		{&fakeOperator{admitted: api.Admission{Action: renewal}, lost: true}, "lost the connection to the operator"},
		{&fakeOperator{err: &fsm.RefusedError{Rule: "Renewable", Reason: "it is the customer's own"}}, "it is the customer's own"},
	} {
		d := newDesk(t, test.running)
		d.expect(d.types("rotate-kotsadm-certs", "--timeout", "10ms"), exitFailed, "", test.says)
	}
	d := newDesk(t, nil)
	written(t, d)
	d.expect(d.types("rotate-kotsadm-certs"), exitFailed, "", "no operator runs that could renew the certificate")
	d.expect(d.types("rotate-kotsadm-certs", "--ttl", "0s"), exitUsage, "", "--ttl is 0s; it must be more than 0")
	d.expect(d.types("rotate-kotsadm-certs", "kurl-proxy"), exitUsage, "", "takes no argument")
}
