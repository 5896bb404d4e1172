package node

import (
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// kinds returns the kinds of action about nodes that EKCO can begin automatically.
func kinds() []fsm.ActionKind {
	common := []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleExcluded, RuleStormBrake, fsm.RuleBackOff}
	return []fsm.ActionKind{
		{
			Name: journal.ActionClearNode, Verb: "clear", Machine: Machine, Rules: common,
			SwitchedOff: func(p fsm.Policy) string {
				return textUnless(nodePolicy(p.Of[Machine]).ClearDeadNodes, "clear_dead_nodes is off")
			},
		},
		{
			Name: journal.ActionPurgeNode, Verb: "purge", Machine: Machine, Manual: true,
			Rules:   append(slices.Clone(common), RuleReadyMinimums, RuleTriedBefore, fsm.RuleOneAtATime, fsm.RuleCooldown),
			Domains: []string{journal.DomainNodes, journal.DomainControlPlane, journal.DomainStorage},
			Turn:    "only one node is purged at a time",
			SwitchedOff: func(p fsm.Policy) string {
				return textUnless(nodePolicy(p.Of[Machine]).PurgeDeadNodes, "purge_dead_nodes is off")
			},
		},
	}
}

func textUnless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}
