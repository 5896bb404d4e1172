package csr

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Approve is the kind of action that approves a request.
const Approve journal.ActionKind = "approve-csr"

// Capability returns the capability for kubelets' requests.
func Capability() fsm.Capability { return fsm.Capability{Machine: machine{}, Kinds: kinds()} }

// kinds returns the kind approve-csr. It has no domains, because approvals do not affect each other.
func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{{
		Name: Approve, Verb: "approve", Machine: Name,
		Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
		SwitchedOff: func(p fsm.Policy) string {
			if policyOf(p).Approve {
				return ""
			}
			return "auto_approve_kubelet_csrs is off"
		},
	}}
}
