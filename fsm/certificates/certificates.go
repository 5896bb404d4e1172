package certificates

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "certificate"

// The states of certificates that belong together.
const (
	// Valid: none of them is due.
	Valid journal.State = "Valid"
	// Due: one of them must be renewed.
	Due journal.State = "Due"
	// Renewing: a renew-certificate action is open.
	Renewing journal.State = "Renewing"
	// Foreign: they are a customer's own.
	Foreign journal.State = "Foreign"
	// Unrenewed: EKCO does not renew them; the facts say why.
	Unrenewed journal.State = "Unrenewed"
	// Unreadable: something is wrong with them; the facts say what.
	Unreadable journal.State = "Unreadable"
	// Unknown: EKCO has not read them yet.
	Unknown journal.State = "Unknown"
	// Absent: they do not exist.
	Absent journal.State = "Absent"
)

// Policy has the settings for certificates.
type Policy struct {
	// Renew is rotate_certs, Every rotate_certs_check_interval, TTL rotate_certs_ttl.
	Renew bool
	Every time.Duration
	TTL   time.Duration
}

func renews(policy any) bool {
	p, _ := policy.(Policy)
	return p.Renew
}

// Capability returns the capability for certificates.
func Capability() fsm.Capability {
	return fsm.Capability{Machine: newMachine(), Kinds: kinds(), Rules: []fsm.Rule{rolloutRule()}}
}

func kinds() []fsm.ActionKind {
	return append(primaryKinds(), fsm.ActionKind{
		Name: journal.ActionRenewCertificate, Verb: "renew", Machine: Machine, Manual: true,
		Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
		SwitchedOff: func(p fsm.Policy) string {
			if renews(p.Of[Machine]) {
				return ""
			}
			return "rotate_certs is off"
		},
	})
}

// certificates is the state of certificates that are renewed together.
type certificates struct {
	fsm.Object[journal.CertificateFacts]
	// RenewedAt is when EKCO last renewed them, RenewedBy the action that did.
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Looked is the last check of a control plane's certificates.
	Looked looked `json:"looked,omitzero"`
	// Failed is set if an attempt to renew a control plane's certificates failed after the last check was requested.
	Failed bool `json:"failed,omitempty"`
	// Trying is set from the beginning of an attempt to renew a control plane's certificates until it fails or the
	// action ends.
	Trying bool `json:"trying,omitempty"`
	// ChangedAt is when the last such attempt failed, or the last renewal that replaced a certificate ended.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Worse is set if the node stopped being ready during an attempt or soon after it, until it is ready again.
	Worse bool `json:"worse,omitempty"`
}

func of(t *fsm.Thing) *certificates { return t.Data.(*certificates) }

// Known returns the facts of certificates according to the journal, by name.
func Known(s *fsm.State) map[string]journal.CertificateFacts {
	return fsm.KnownObjects[journal.CertificateFacts](s, Machine)
}

// Facts has the facts of certificates and of their last renewal, for programs.
type Facts struct {
	journal.CertificateFacts
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Unseen says why the last check of a control plane found nothing.
	Unseen string `json:"unseen,omitempty"`
}
