package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Kind is a kind of action: its definition, with the rules and locks of package fsm.
type Kind struct {
	Definition
	// Rules names the rules of policy for the kind, from [fsm.Standing]. They are preflights in [Config], asked before
	// each step of an automatic action, and decide from what EKCO knows already. In addition, [SafeMode] is asked for
	// every action, and fsm.RuleContested for automatic ones with a Change.
	Rules []string
	// Domains are the locks that its steps may take, from [fsm.Standing]; see [NoDomains].
	Domains []string
}

// Policy is a placeholder among the preflights of a step in a [Definition]'s plan. EKCO replaces it by the rules of the
// kind, which are then also asked for a person's action.
const Policy = "policy"

// expandPolicy replaces [Policy] in the steps by the kind's rules.
func (k *Kind) expandPolicy(steps []journal.PlannedStep) {
	for i := range steps {
		asked := steps[i].Preflights
		if at := slices.Index(asked, Policy); at >= 0 {
			steps[i].Preflights = slices.Concat(asked[:at], k.Rules, asked[at+1:])
		}
	}
}

// policyRules lists the rules of policy that are asked before every step of an action.
func (k *Kind) policyRules(record journal.ActionRecord) []string {
	rules := []string{SafeMode}
	if record.ByPerson() {
		return rules
	}
	if record.Request.Change != nil {
		rules = append(rules, fsm.RuleContested)
	}
	return append(rules, k.Rules...)
}

// isPolicy reports whether a preflight is a rule of policy.
func (k *Kind) isPolicy(name string) bool {
	return name == SafeMode || name == fsm.RuleContested || slices.Contains(k.Rules, name)
}

// askedLast reports whether a preflight runs after all others have answered, so that its answer is new: one in
// [Definition.AskedLast], or a rule of policy.
func (k *Kind) askedLast(name string) bool {
	return slices.Contains(k.AskedLast, name) || k.isPolicy(name)
}
