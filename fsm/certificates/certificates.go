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
	// Valid: there is nothing to be done about them.
	Valid journal.State = "Valid"
	// Due: one of them is to be renewed.
	Due journal.State = "Due"
	// Renewing: a renew-certificate action is open.
	Renewing journal.State = "Renewing"
	// Foreign: they are a customer's own.
	Foreign journal.State = "Foreign"
	// Unrenewed: EKCO does not renew them, as is said with them.
	Unrenewed journal.State = "Unrenewed"
	// Unreadable: something is wrong with them, as is said with them.
	Unreadable journal.State = "Unreadable"
	// Unknown: EKCO has not read them yet.
	Unknown journal.State = "Unknown"
	// Absent: they are not there.
	Absent journal.State = "Absent"
)

// Policy is what the configuration says of certificates.
type Policy struct {
	// Renew is rotate_certs, Every rotate_certs_check_interval.
	Renew bool
	Every time.Duration
}

func renews(policy any) bool {
	p, _ := policy.(Policy)
	return p.Renew
}

// Capability returns what EKCO can do about certificates.
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

// certificates is what the machine keeps of them.
type certificates struct {
	fsm.Object[journal.CertificateFacts]
	// RenewedAt is when EKCO renewed them last, by RenewedBy.
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Looked is the last look at those of a control plane.
	Looked looked `json:"looked,omitzero"`
	// Failed is set if a try to renew those of a control plane failed since the last look was requested.
	Failed bool `json:"failed,omitempty"`
	// Trying is set from the beginning of a try to renew those of a control plane until it fails or the action ends.
	Trying bool `json:"trying,omitempty"`
	// ChangedAt is when the last such try failed, or the last renewal ended that replaced a certificate.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Worse is set if the node stopped being ready during a try or soon after it, until it is ready again.
	Worse bool `json:"worse,omitempty"`
}

func of(t *fsm.Thing) *certificates { return t.Data.(*certificates) }

// Known returns the facts of certificates, as far as the journal knows them, by name.
func Known(s *fsm.State) map[string]journal.CertificateFacts {
	return fsm.KnownObjects[journal.CertificateFacts](s, Machine)
}

// Facts are what is known of certificates, with when EKCO renewed them, for programs.
type Facts struct {
	journal.CertificateFacts
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Unseen says why the last look at those of a control plane found nothing.
	Unseen string `json:"unseen,omitempty"`
}
