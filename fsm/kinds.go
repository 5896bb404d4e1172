package fsm

import (
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// ActionKind is a kind of action as data: what policy, refusals and requests must
// know of it. What its actions do is not here.
type ActionKind struct {
	Name journal.ActionKind
	// Verb begins the ids of its actions.
	Verb string
	// Machine names the machine of the things that its actions are about.
	Machine string
	// Rules are the rules of policy that it obeys. Those that it does not list do
	// not concern it.
	Rules []string
	// Domains are what no other action may change while a step of this one does.
	Domains []string
	// Manual says that a person may ask for it.
	Manual bool
	// Turn says, for people, that only one of its actions runs at a time. It belongs
	// to [RuleOneAtATime].
	Turn string
	// SwitchedOff says which setting is against actions that EKCO begins by itself,
	// or "" if there is none; nil means never.
	SwitchedOff func(p Policy) string
}

// Kinds returns every kind of action that is known here.
func Kinds() []ActionKind {
	careful := []string{RuleSafeMode, RuleAPIUnreachable, RuleSettling, RulePaused, RuleExcluded, RuleStormBrake, RuleBackOff}
	return []ActionKind{
		{
			Name: journal.ActionClearNode, Verb: "clear", Machine: "node", Rules: careful,
			SwitchedOff: func(p Policy) string { return unless(p.ClearDeadNodes, "clear_dead_nodes is off") },
		},
		{
			Name: journal.ActionPurgeNode, Verb: "purge", Machine: "node", Manual: true,
			Rules:   append(slices.Clone(careful), RuleReadyMinimums, RuleTriedBefore, RuleOneAtATime, RuleCooldown),
			Domains: []string{"nodes", "control-plane", "storage"},
			Turn:    "only one node is purged at a time",
			SwitchedOff: func(p Policy) string {
				return unless(p.PurgeDeadNodes, "purge_dead_nodes is off")
			},
		},
	}
}

func unless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}

// obeys reports whether the rule concerns the kind.
func (k *ActionKind) obeys(rule string) bool { return slices.Contains(k.Rules, rule) }

// kind returns what is known of a kind of action, or nil.
func (s *State) kind(name journal.ActionKind) *ActionKind { return s.cached().kinds[name] }

// obeys reports whether a rule concerns the action. An action of a kind that is not
// known obeys none here; [CheckRule] holds it.
func (s *State) obeys(rec *journal.ActionRecord, rule string) bool {
	kind := s.kind(rec.Kind)
	return kind != nil && kind.obeys(rule)
}

// manualKinds names what a person may ask for.
func manualKinds() string {
	var names []string
	for _, kind := range Kinds() {
		if kind.Manual {
			names = append(names, string(kind.Name))
		}
	}
	return strings.Join(names, " or ")
}
