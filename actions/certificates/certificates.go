// Package certificates renews certificates in Secrets and certificates of control planes. It restarts the servers that
// need a restart, and waits until they serve the new certificates.
package certificates

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// The preflights.
const (
	// CertificateRenewable requires that the certificates exist, that EKCO can read and sign them, and that they are
	// not a customer's own.
	CertificateRenewable = "CertificateRenewable"
	// CertificateServed holds the action after one wait for the new certificates has timed out. The pods' reasons are
	// in the hold.
	CertificateServed = "CertificateServed"
)

const (
	renewTimeout   = 2 * time.Minute // enough for keys of 4096 bits on a slow machine
	restartTimeout = time.Minute
	// servedTimeout is long enough for several Envoy pods that are replaced one after the other. Each may take five
	// minutes to end.
	servedTimeout = 30 * time.Minute
	// loadedTimeout is long enough for a kubelet to update the Secret in a pod, and for the pod to read it.
	loadedTimeout = 5 * time.Minute
)

// Store reads and writes the Secrets, and checks and restarts the servers that use their certificates. It returns the
// errors of package kube.
type Store interface {
	Read(ctx context.Context, of journal.Subject) (journal.CertificateFacts, error)
	Ready(ctx context.Context, of journal.Subject) error
	WhyNotRenewed(ctx context.Context, of journal.Subject, due secrets.Due) (facts journal.CertificateFacts, lacks string, err error)
	Renew(ctx context.Context, of journal.Subject, due secrets.Due) (journal.CertificateFacts, error)
	Restarts(of journal.Subject) bool
	LoadsFirst(of journal.Subject) bool
	Pods(ctx context.Context, of journal.Subject) ([]journal.CertificatePod, error)
	WhyNotRestarted(ctx context.Context, of journal.Subject, pods []journal.CertificatePod, since time.Time) (lacks string, err error)
	Restart(ctx context.Context, of journal.Subject, pods []journal.CertificatePod, since time.Time) error
	WhyNotLoaded(ctx context.Context, of journal.Subject, least int) (lacks string, err error)
	WhyNotServed(ctx context.Context, of journal.Subject, least int) (lacks string, err error)
}

// Due reports whether certificates must be renewed for a request with this input, and the reason. The machine uses the
// same rule.
type Due func(facts journal.CertificateFacts, input journal.CertificateInput) (why string, due bool)

// ruleFor returns the rule for the input of the action's request.
func (d Due) ruleFor(record journal.ActionRecord) (secrets.Due, error) {
	input, err := journal.InputOf[journal.CertificateInput](record.Request)
	return func(facts journal.CertificateFacts) (string, bool) { return d(facts, input) }, err
}

// storeWithRule is a store with the rule that decides whether its certificates must be renewed.
type storeWithRule struct {
	Store
	due Due
}

// New returns the action. It calls changed after it has written Secrets, so that the observers read them again at once.
func New(store Store, due Due, changed func()) actions.Definition {
	of := storeWithRule{store, due}
	return actions.Definition{
		Kind: journal.ActionRenewCertificate, Noun: "renewal", Expendable: true, RetriesStalled: true, Needed: []string{journal.StepRenewCertificate},
		Plan: plan(of),
		Steps: map[string]actions.StepDef{
			journal.StepRenewCertificate: {Step: renew{of, changed}},
			journal.StepRestartServers:   {Step: restart{store}},
			journal.StepAwaitLoaded:      {Step: await{of, Store.WhyNotLoaded}},
			journal.StepAwaitServed:      {Step: await{of, Store.WhyNotServed}},
		},
		Preflights: map[string]actions.Preflight{
			CertificateRenewable: renewable{of},
			CertificateServed:    served{of},
		},
	}
}

type facts struct {
	// Before has the certificates before the renewal.
	Before journal.CertificateFacts `json:"before"`
	// Since is the earliest restart of a server that counts as a restart with the new certificates.
	Since time.Time `json:"since"`
}

func plan(of storeWithRule) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
		due, err := of.due.ruleFor(record)
		if err != nil {
			return journal.Plan{}, err
		}
		before, err := of.Read(ctx, record.Subject)
		if err != nil && !errors.Is(kube.Sentinel(err), kube.ErrNotFound) { // the preflight handles a missing Secret
			return journal.Plan{}, err
		}
		captured, err := json.Marshal(facts{before, earliestRestart(before, due)})
		steps := []journal.PlannedStep{{
			ID: journal.StepRenewCertificate, Does: journal.StepRenewCertificate, Preflights: []string{CertificateRenewable},
			Timeout: journal.Duration(renewTimeout), Domains: actions.NoDomains,
		}}
		after := journal.StepRenewCertificate
		if of.LoadsFirst(record.Subject) {
			steps = append(steps, journal.PlannedStep{
				ID: journal.StepAwaitLoaded, Does: journal.StepAwaitLoaded, After: []string{after}, Preflights: []string{CertificateServed},
				Timeout: journal.Duration(loadedTimeout), Domains: actions.NoDomains,
			})
			after = journal.StepAwaitLoaded
		}
		if of.Restarts(record.Subject) {
			steps = append(steps, journal.PlannedStep{
				ID: journal.StepRestartServers, Does: journal.StepRestartServers, After: []string{after},
				Timeout: journal.Duration(restartTimeout), Domains: actions.NoDomains,
			})
			after = journal.StepRestartServers
		}
		steps = append(steps, journal.PlannedStep{
			ID: journal.StepAwaitServed, Does: journal.StepAwaitServed, After: []string{after}, Preflights: []string{CertificateServed},
			Timeout: journal.Duration(servedTimeout), Domains: actions.NoDomains,
		})
		return journal.Plan{Facts: captured, Steps: steps}, err
	}
}

// earliestRestart returns the time from which a server's restart counts: now, or the creation time of the certificates
// if they are already renewed.
func earliestRestart(before journal.CertificateFacts, due secrets.Due) (at time.Time) {
	if _, is := due(before); is || len(before.Certificates) == 0 {
		return time.Now().UTC()
	}
	for _, certificate := range before.Certificates {
		if certificate.NotBefore.After(at) {
			at = certificate.NotBefore
		}
	}
	return at
}

// renewable reads the certificates and checks whether EKCO may renew them. It also passes if they are already renewed,
// for example before a crash, because the step then has nothing to do.
type renewable struct{ storeWithRule }

func (p renewable) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	due, err := p.due.ruleFor(record)
	if err != nil {
		return actions.Hold(err.Error()).About("input")
	}
	live, lacks, err := p.WhyNotRenewed(ctx, record.Subject, due)
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Abandon("the certificates no longer exist").About("gone")
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case live.Foreign:
		return actions.Abandon("it is a customer's own certificate now, which EKCO never changes").About("foreign")
	case live.Unreadable != "":
		held := actions.Hold(live.Unreadable).About("unreadable")
		held.Grace = 24 * time.Hour // the same time as for unreadable certificates without an open renewal
		return held
	case lacks == "":
		return actions.Pass()
	}
	switch err := p.Ready(ctx, record.Subject); {
	case errors.Is(err, secrets.ErrImmutable):
		return actions.Hold(err.Error()).About("immutable")
	case err != nil:
		return actions.Hold(err.Error()).About("authority")
	}
	return actions.Pass()
}

// renew writes new certificates to the Secrets.
type renew struct {
	storeWithRule
	changed func()
}

func (s renew) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	due, err := s.due.ruleFor(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	live, lacks, err := s.WhyNotRenewed(ctx, step.Action.Subject, due)
	if err != nil || lacks != "" {
		return actions.Proof{Missing: lacks}, err
	}
	outputs, err := s.outputs(ctx, step, live)
	return actions.Proof{Done: err == nil, Outputs: outputs}, err
}

func (s renew) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	due, err := s.due.ruleFor(step.Action)
	if err != nil {
		return nil, err
	}
	live, err := s.Renew(ctx, step.Action.Subject, due)
	if err != nil {
		return nil, err
	}
	s.changed()
	return s.outputs(ctx, step, live)
}

// outputs returns the new certificates, and all pods that existed at the time of the write: these may have the old
// ones.
func (s renew) outputs(ctx context.Context, step actions.StepContext, live journal.CertificateFacts) (json.RawMessage, error) {
	pods, err := s.Pods(ctx, step.Action.Subject)
	if err != nil {
		return nil, err
	}
	return json.Marshal(journal.CertificateRenewed{Certificates: live.Certificates, Pods: pods})
}

// renewalOutputs decodes the outputs of the first step, and returns the earliest restart that counts. A pod that
// started before the new certificates were created has the old ones, even if it started after the plan.
func renewalOutputs(step actions.StepContext) (left journal.CertificateRenewed, since time.Time, err error) {
	var captured facts
	if err := step.Facts(&captured); err != nil {
		return left, since, err
	}
	_, err = step.Output(journal.StepRenewCertificate, &left)
	since = captured.Since
	for _, certificate := range left.Certificates {
		if made := certificate.NotBefore.Add(certificates.Back); made.After(since) {
			since = made
		}
	}
	return left, since, err
}

// restart restarts the servers that still have the old certificate.
type restart struct{ Store }

func (s restart) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	left, since, err := renewalOutputs(step)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks, err := s.WhyNotRestarted(ctx, step.Action.Subject, left.Pods, since)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return actions.Proof{Done: true}, nil // the add-on was removed
	}
	return actions.Proof{Done: err == nil && lacks == "", Missing: lacks}, err
}

func (s restart) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	left, since, err := renewalOutputs(step)
	if err != nil {
		return nil, err
	}
	return nil, s.Restart(ctx, step.Action.Subject, left.Pods, since)
}

// serversCheck returns a reason if some servers do not serve the new certificates, or "".
type serversCheck func(store Store, ctx context.Context, of journal.Subject, least int) (lacks string, err error)

// await changes nothing: it waits for the servers.
type await struct {
	storeWithRule
	lacks serversCheck
}

func (s await) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	left, _, err := renewalOutputs(step)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks, err := s.unservedReason(ctx, step.Action, left, s.lacks)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return actions.Proof{Done: true}, nil // no server can serve them any more
	}
	return actions.Proof{Done: err == nil && lacks == "", Missing: lacks}, err
}

// unservedReason returns the reason why the new certificates are not served, or "". Certificates that must be renewed
// again do not count, because EKCO requests no other renewal while this one is open.
func (j storeWithRule) unservedReason(ctx context.Context, record journal.ActionRecord, left journal.CertificateRenewed, by serversCheck) (lacks string, err error) {
	due, err := j.due.ruleFor(record)
	if err != nil {
		return "", err
	}
	live, err := j.Read(ctx, record.Subject)
	if err != nil {
		return "", err
	}
	if _, is := due(live); is {
		return "", nil
	}
	return by(j.Store, ctx, record.Subject, min(1, len(left.Pods)))
}

func (await) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

// served is the preflight [CertificateServed].
type served struct{ storeWithRule }

func (p served) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	lacks, waits := timedOutCheck(record)
	if record.Request.DryRun || !waits {
		return actions.Pass() // nothing was changed, or no wait began
	}
	var left journal.CertificateRenewed
	if outputs := record.Steps[journal.StepRenewCertificate].Outputs; len(outputs) > 0 {
		if err := json.Unmarshal(outputs, &left); err != nil {
			return actions.Hold("cannot read the outcome of the renewal: " + err.Error()).About("outputs")
		}
	}
	switch lacks, err := p.unservedReason(ctx, record, left, lacks); {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Pass()
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case lacks != "":
		return actions.Hold(lacks).About("unserved")
	}
	return actions.Pass()
}

// timedOutCheck returns the check that has timed out, if there is one.
func timedOutCheck(record journal.ActionRecord) (serversCheck, bool) {
	if loaded := record.Steps[journal.StepAwaitLoaded]; loaded.Failures > 0 && !loaded.Done() {
		return Store.WhyNotLoaded, true
	}
	return Store.WhyNotServed, record.Steps[journal.StepAwaitServed].Failures > 0
}
