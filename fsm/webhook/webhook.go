package webhook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "webhook"

// The states of the webhooks.
const (
	Absent     journal.State = "Absent"
	Serving    journal.State = "Serving"
	Registered journal.State = "Registered"
	Removed    journal.State = "Removed"
)

// renewBefore is how long before its end a certificate of 90 days is replaced: after 30 days, so that an EKCO that was
// away for two months still finds a valid one.
const renewBefore = 60 * 24 * time.Hour

// retryAfter is longer than it takes until EKCO sees the effect of an action.
const retryAfter = time.Minute

// Policy is the part of the configuration that decisions about the webhooks depend on.
type Policy struct {
	// Wanted are the names of the webhooks that the settings ask for, sorted.
	Wanted []string
	// Settings is a hash of all settings of the webhooks.
	Settings string
}

func policyOf(policy any) Policy {
	p, _ := policy.(Policy)
	return p
}

// Capability returns the capability for the webhooks.
func Capability() fsm.Capability { return fsm.Capability{Machine: newMachine(), Kinds: kinds()} }

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: journal.ActionConfigureWebhooks, Verb: "configure", Machine: Machine,
		// Not RuleSettling: after a restart of EKCO, pods would start with the wrong images until then.
		Rules: []string{fsm.RuleAPIUnreachable, fsm.RulePaused, fsm.RuleBackOff},
	}}
}

type webhooks struct {
	fsm.Object[journal.WebhookFacts]
}

func of(t *fsm.Thing) journal.WebhookFacts { return t.Data.(*webhooks).Facts }

// machine implements [fsm.Machine] and [fsm.Pausable].
type machine struct{ fsm.Objects }

func newMachine() machine {
	return machine{fsm.Objects{Machine: Machine, Subjects: []journal.Subject{journal.Webhooks}}}
}

func (machine) New(*fsm.Thing) any { return &webhooks{} }

func (m machine) Table() fsm.Table {
	present := fsm.Names(Absent, Serving, Registered)
	return fsm.Table{
		Name: Machine, Title: "Admission webhooks",
		About:   "One object, `kurl/ekco`, for the webhooks of `pod_image_overrides` and `rook_priority_class`. It exists while one of them is set or registered.",
		Initial: string(Absent), Normal: fsm.Names(Registered), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "serve", From: fsm.Names(Absent), To: string(Serving), When: "EKCO serves the webhooks, and they are not registered", Report: fsm.ReportReason("EKCO serves them")},
			{Event: "register", From: fsm.Names(Absent, Serving), To: string(Registered), When: "EKCO serves the webhooks, and all of them are registered with its certificate", Report: fsm.ReportReason("the API servers call them")},
			{Event: "unregister", From: fsm.Names(Registered), To: string(Serving), When: "one of them is not registered, or with another certificate", Report: fsm.ReportReason("not all of them are registered")},
			{Event: "stop", From: fsm.Names(Serving, Registered), To: string(Absent), When: "EKCO does not serve them", Report: fsm.ReportReason("EKCO does not serve them")},
			{Event: "removed", From: present, To: string(Removed), When: "none of them is set or registered", Report: m.ReportLost},
			{Event: "back", From: fsm.Names(Removed), To: string(Absent), When: "one of them is set or registered", Report: fsm.ReportReason("a setting asks for them")},
		},
	}
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	facts, policy := of(t), policyOf(w.PolicyOf(Machine))
	switch {
	case t.GoneSeq != 0:
		return Removed
	case facts.Serving == "":
		return Absent
	case len(policy.Wanted) == 0 || unregistered(facts, policy, facts.Serving) != "":
		return Serving
	}
	return Registered
}

// unregistered returns which webhook is not registered with this certificate, or "".
func unregistered(facts journal.WebhookFacts, policy Policy, certificate string) string {
	for _, name := range policy.Wanted {
		registered, exists := configuration(facts, name)
		switch {
		case !exists:
			return name + " is not registered"
		case len(registered.Differs) > 0:
			return fmt.Sprintf("%s differs in %s from what EKCO registers", name, strings.Join(registered.Differs, ", "))
		case !slices.Contains(registered.Trusts, certificate):
			return name + " is registered with another certificate"
		}
	}
	return ""
}

func configuration(facts journal.WebhookFacts, name string) (found journal.WebhookConfiguration, exists bool) {
	i := slices.IndexFunc(facts.Configurations, func(c journal.WebhookConfiguration) bool { return c.Name == name })
	if i < 0 {
		return found, false
	}
	return facts.Configurations[i], true
}

// missing returns what EKCO must change, or "".
func missing(facts journal.WebhookFacts, policy Policy) string {
	for _, registered := range facts.Configurations {
		if !slices.Contains(policy.Wanted, registered.Name) {
			return registered.Name + " is registered, and no setting asks for it"
		}
	}
	certificate := facts.Certificate
	switch {
	case len(policy.Wanted) == 0 && facts.Serving != "":
		return "no setting asks for webhooks"
	case len(policy.Wanted) == 0:
		return ""
	case certificate.Problem != "":
		return certificate.Problem
	case !facts.Service:
		return "Service " + journal.Webhooks.Name + " does not exist"
	case facts.Serving == "":
		return "EKCO does not serve them"
	case facts.Serving != certificate.Fingerprint:
		return "EKCO serves them with another certificate than that of the Secret"
	}
	if reason := unregistered(facts, policy, certificate.Fingerprint); reason != "" {
		return reason
	}
	for _, registered := range facts.Configurations {
		if len(registered.Trusts) > 1 {
			return registered.Name + " trusts a former certificate"
		}
	}
	return ""
}

// renewal returns when the certificate must be replaced: at once if the clock was wrong when it was created. has is false
// if there is no certificate, or none is needed.
func renewal(facts journal.WebhookFacts, w *fsm.World) (at time.Time, has bool) {
	certificate := facts.Certificate
	at, has = certificate.NotAfter.Add(-renewBefore), certificate.Fingerprint != "" && len(policyOf(w.PolicyOf(Machine)).Wanted) > 0
	if w.Now.Before(certificate.NotBefore) {
		at = w.Now
	}
	return at, has
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	facts, policy := of(t), policyOf(w.PolicyOf(Machine))
	if t.GoneSeq != 0 || len(w.Open(t)) > 0 {
		return
	}
	due, may := t.RepeatDue(journal.ActionConfigureWebhooks, w.Policy, retryAfter)
	if !may {
		return
	}
	if missing(facts, policy) == "" {
		renew, has := renewal(facts, w)
		if !has {
			return
		}
		if renew.After(due) {
			due = renew
		}
	}
	want(fsm.Want{Kind: journal.ActionConfigureWebhooks, Due: due, Rank: t.Since, Change: change(facts, policy)})
}

// absent is the value of a registration that does not exist, in a [journal.Change].
const absent = "absent"

// change returns the change of a registration that is not as the settings ask, or nil. Another program may change it
// again. The new value names the settings: if they have changed since, no other program is the cause.
func change(facts journal.WebhookFacts, policy Policy) *journal.Change {
	made := func(name, from, to string) *journal.Change {
		return &journal.Change{Key: name, Field: "MutatingWebhookConfiguration " + name, From: from, To: to}
	}
	for _, registered := range facts.Configurations {
		if !slices.Contains(policy.Wanted, registered.Name) {
			return made(registered.Name, "registered", absent)
		}
	}
	for _, name := range policy.Wanted {
		registered, exists := configuration(facts, name)
		to := "registered for settings " + policy.Settings
		switch {
		case !exists:
			return made(name, absent, to)
		case len(registered.Differs) > 0:
			return made(name, strings.Join(registered.Differs, ", ")+" changed", to)
		}
	}
	return nil
}

// Disputed implements [fsm.Machine].
func (machine) Disputed(_ *fsm.Thing, change *journal.Change) (what, advice string) {
	does := "changing " + change.Field + " (" + change.From + ")"
	switch absent {
	case change.From:
		does = "deleting " + change.Field
	case change.To:
		does = "creating " + change.Field
	}
	return "another program keeps " + does, "find that program, for example in the audit log of the API servers"
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	facts, policy := of(t), policyOf(w.PolicyOf(Machine))
	input, reason := journal.WebhookInput{Settings: policy.Settings}, missing(facts, policy)
	if renew, has := renewal(facts, w); has && !w.Now.Before(renew) {
		input.Replace = facts.Certificate.Fingerprint
		if reason == "" {
			reason = "the certificate is valid until " + facts.Certificate.NotAfter.UTC().Format(time.DateOnly)
		}
	}
	return journal.ActionRequested{Reason: reason, Input: input}, t.FactsSeq
}

// Outdated implements [fsm.Machine]. Once an action has begun, its own effect must not end it.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	facts, policy := of(t), policyOf(w.PolicyOf(Machine))
	input, err := journal.InputOf[journal.WebhookInput](rec.Request)
	switch {
	case err != nil:
		return ""
	case input.Settings != policy.Settings:
		return "the settings have changed"
	case len(rec.Steps) == 0 && input.Replace == "" && missing(facts, policy) == "":
		return "nothing is missing"
	}
	return ""
}

// Details implements [fsm.Machine].
func (machine) Details(t *fsm.Thing, _ *fsm.World) []string {
	facts := of(t)
	details := make([]string, 0, 2)
	for _, registered := range facts.Configurations {
		details = append(details, "registered: "+registered.Name)
	}
	switch certificate := facts.Certificate; {
	case certificate.Problem != "":
		details = append(details, certificate.Problem)
	case certificate.Fingerprint != "":
		details = append(details, "certificate valid until "+certificate.NotAfter.UTC().Format(time.DateOnly))
	}
	return details
}

// Measures implements [fsm.Machine].
func (machine) Measures(t *fsm.Thing, w *fsm.World, tell func(fsm.Measure)) {
	value := map[bool]float64{true: 1}
	facts, policy := of(t), policyOf(w.PolicyOf(Machine))
	for _, name := range policy.Wanted {
		registered, _ := configuration(facts, name)
		tell(fsm.Measure{
			Name: "webhook_registered", Help: "1 if API servers call the admission webhook, and EKCO serves it with a certificate that they trust.", Label: "webhook", Of: name,
			Value: value[facts.Serving != "" && slices.Contains(registered.Trusts, facts.Serving)],
		})
	}
}
