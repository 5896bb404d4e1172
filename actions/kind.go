package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Kind is a kind of action: what is done for it, with what policy asks.
type Kind struct {
	Definition
	// Rules names the preflights by which policy judges what EKCO began by itself,
	// before each step, as [fsm.Standing] has them: the definition has no word in it.
	// They judge by what EKCO knows already; the caller gives them to [Config].
	// [SafeMode] is asked besides, whoever began, and fsm.RuleContested about what
	// carries a change.
	Rules []string
	// Domains are what its steps may take, as [fsm.Standing] has them; see [NoDomains].
	Domains []string
}

// Policy stands among the preflights of a step that a [Definition] plans for the rules
// of its kind, which are then asked of persons too. The plan names each of them.
const Policy = "policy"

// askPolicy puts the kind's rules where the steps name [Policy].
func (k *Kind) askPolicy(steps []journal.PlannedStep) {
	for i := range steps {
		asked := steps[i].Preflights
		if at := slices.Index(asked, Policy); at >= 0 {
			steps[i].Preflights = slices.Concat(asked[:at], k.Rules, asked[at+1:])
		}
	}
}

// standing lists the preflights by which policy judges every step of an action.
func (k *Kind) standing(record journal.ActionRecord) []string {
	rules := []string{SafeMode}
	if record.ByPerson() {
		return rules
	}
	if record.Request.Change != nil {
		rules = append(rules, fsm.RuleContested)
	}
	return append(rules, k.Rules...)
}

// isPolicy reports whether a preflight judges by what EKCO knows already.
func (k *Kind) isPolicy(name string) bool {
	return name == SafeMode || name == fsm.RuleContested || slices.Contains(k.Rules, name)
}

// askedLast reports whether a preflight is asked when all others have answered:
// what looks at something that may change meanwhile, and the rules of policy, which
// take no time.
func (k *Kind) askedLast(name string) bool {
	return slices.Contains(k.AskedLast, name) || k.isPolicy(name)
}
