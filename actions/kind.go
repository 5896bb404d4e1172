package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Kind is a kind of action: its definition, with the rules and locks of package fsm.
type Kind struct {
	Definition
	// Rules names the rules of policy for the kind, from [fsm.TermsByKind]. [Config] has them as preflights, which run
	// before each step of an automatic action and use only what EKCO already knows. [SafeMode] runs for every action,
	// and fsm.RuleContested for automatic actions with a Change.
	Rules []string
	// Domains lists the locks that the kind's steps may take, from [fsm.TermsByKind]; see [NoDomains].
	Domains []string
}

// Policy is a placeholder in the preflights of a [Definition]'s plan. EKCO replaces it with the rules of the kind,
// which then also run for a person's action.
const Policy = "policy"

// expandPolicy replaces [Policy] in the steps with the kind's rules.
func (k *Kind) expandPolicy(steps []journal.PlannedStep) {
	for i := range steps {
		asked := steps[i].Preflights
		if at := slices.Index(asked, Policy); at >= 0 {
			steps[i].Preflights = slices.Concat(asked[:at], k.Rules, asked[at+1:])
		}
	}
}

// rulesFor lists the rules of policy that run before every step of the action.
func (k *Kind) rulesFor(record journal.ActionRecord) []string {
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

// isLastPreflight reports whether a preflight runs after all others have answered, so that its answer is recent: a
// preflight in [Definition.AskedLast], or a rule of policy.
func (k *Kind) isLastPreflight(name string) bool {
	return slices.Contains(k.AskedLast, name) || k.isPolicy(name)
}
