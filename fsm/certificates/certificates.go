package certificates

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "certificate"

// The states of the certificates of one subject, which are renewed together.
const (
	// Valid: no certificate is due.
	Valid journal.State = "Valid"
	// Due: a certificate must be renewed.
	Due journal.State = "Due"
	// Renewing: a renew-certificate action is open.
	Renewing journal.State = "Renewing"
	// Foreign: the certificates are a customer's own.
	Foreign journal.State = "Foreign"
	// Unrenewed: EKCO does not renew the certificates. The facts say why.
	Unrenewed journal.State = "Unrenewed"
	// Unreadable: EKCO cannot read the certificates. The facts say why.
	Unreadable journal.State = "Unreadable"
	// Unknown: EKCO has not read the certificates yet.
	Unknown journal.State = "Unknown"
	// Absent: the certificates do not exist.
	Absent journal.State = "Absent"
)

// Policy has the settings for certificates.
type Policy struct {
	// Renew is the setting rotate_certs, Every is rotate_certs_check_interval, and TTL is rotate_certs_ttl.
	Renew bool
	Every time.Duration
	TTL   time.Duration
}

func isRenewalOn(policy any) bool {
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
			if isRenewalOn(p.Of[Machine]) {
				return ""
			}
			return "rotate_certs is off"
		},
	})
}

// certificates is the machine's data about the certificates of one subject.
type certificates struct {
	fsm.Object[journal.CertificateFacts]
	// RenewedAt is when EKCO last renewed the certificates. RenewedBy is the id of that action.
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Looked is the result of the last check of a control plane's certificates.
	Looked lastCheck `json:"looked,omitzero"`
	// Failed is set if an attempt to renew a control plane's certificates has failed since the last check was
	// requested.
	Failed bool `json:"failed,omitempty"`
	// Trying is set from the beginning of an attempt to renew a control plane's certificates until it fails or the
	// action ends.
	Trying bool `json:"trying,omitempty"`
	// ChangedAt is when the last attempt failed, or when the last renewal that replaced a certificate ended.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Worse is set if the node stopped being ready during an attempt or soon after it. It stays set until the node is
	// ready again.
	Worse bool `json:"worse,omitempty"`
}

func of(t *fsm.Thing) *certificates { return t.Data.(*certificates) }

// Known returns the facts about all certificates that exist according to the journal, by name.
func Known(s *fsm.State) map[string]journal.CertificateFacts {
	return fsm.KnownObjects[journal.CertificateFacts](s, Machine)
}

// Facts has the facts about certificates and about their last renewal, for the JSON output.
type Facts struct {
	journal.CertificateFacts
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	RenewedBy string    `json:"renewed_by,omitempty"`
	// Unseen says why the last check of a control plane could not read the certificates, or is "".
	Unseen string `json:"unseen,omitempty"`
}
