package webhook

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/journal"
)

const (
	images   = "pod-image-overrides.kurl.sh"
	priority = "rook-priority.kurl.sh"
	// current and former are fingerprints of certificates.
	current = "current"
	former  = "former"
)

// both are settings that ask for both webhooks.
var both = Policy{Wanted: []string{images, priority}, Settings: "1"}

// world is the journal of a cluster in which the settings ask for both webhooks.
type world struct{ *fsmtest.Journal }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{fsmtest.New(t, fsm.DefaultPolicy().With(Machine, both), Capability())}
}

// set changes the settings, as a restart of EKCO does.
func (w *world) set(policy Policy) { w.P = w.P.With(Machine, policy) }

// registered returns the facts if everything is as EKCO wants it. The certificate was created at the present time.
func (w *world) registered() journal.WebhookFacts {
	return journal.WebhookFacts{
		Certificate: journal.WebhookCertificate{
			Fingerprint: current, NotBefore: w.Now.Add(-24 * time.Hour), NotAfter: w.Now.Add(90 * 24 * time.Hour),
		},
		Serving: current, Service: true,
		Configurations: []journal.WebhookConfiguration{{Name: images, Trusts: []string{current}}, {Name: priority, Trusts: []string{current}}},
	}
}

// unregistered returns the facts of a cluster in which only the Service and the Secret exist.
func (w *world) unregistered() journal.WebhookFacts {
	facts := w.registered()
	facts.Serving, facts.Configurations = "", nil
	return facts
}

func (w *world) observe(facts journal.WebhookFacts) {
	w.T.Helper()
	w.Observe(Machine, journal.Webhooks, facts)
}

// open returns the open action after EKCO has decided, or nil.
func (w *world) open() *journal.ActionRecord {
	w.T.Helper()
	w.Decide()
	return w.Open(journal.Webhooks)
}

// wants fails the test unless EKCO requests an action with a reason, or none if reason is "".
func (w *world) wants(reason string) *journal.ActionRecord {
	w.T.Helper()
	rec, got := w.open(), ""
	if rec != nil {
		got = rec.Request.Reason
	}
	if got != reason {
		w.T.Fatalf("EKCO requests %q, want %q; refused: %+v", got, reason, w.S.Refusals)
	}
	return rec
}

// done completes an action, after which the facts are observed.
func (w *world) done(rec *journal.ActionRecord, facts journal.WebhookFacts) {
	w.T.Helper()
	w.Play(rec, journal.StepRegisterWebhooks, nil)
	w.End(rec, journal.OutcomeDone)
	w.observe(facts)
}

func (w *world) state() journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[fsm.Key(journal.Webhooks)].State
}
