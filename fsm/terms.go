package fsm

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Terms are the rules and locks for the steps of a kind of action.
type Terms struct {
	// Rules are the rules that EKCO checks again before each step of an automatic action.
	Rules []string
	// Domains are the locks that the steps may take.
	Domains []string
}

// TermsByKind returns the terms of each kind of action. It returns an error if a kind is defined twice, names an
// unknown machine or rule, or has only one of [RuleOneAtATime] and Turn, and the errors of validateNames.
func TermsByKind(capabilities ...Capability) (map[journal.ActionKind]Terms, error) {
	if err := validateNames(capabilities); err != nil {
		return nil, err
	}
	cache, terms := newCache(capabilities), map[journal.ActionKind]Terms{}
	for _, capability := range capabilities {
		for _, kind := range capability.Kinds {
			if _, twice := terms[kind.Name]; twice {
				return nil, fmt.Errorf("actions of kind %q are defined twice; each kind belongs to one capability", kind.Name)
			}
			if err := cache.validate(&kind); err != nil {
				return nil, err
			}
			terms[kind.Name] = Terms{Rules: cache.stepRules(&kind), Domains: kind.Domains}
		}
	}
	return terms, nil
}

// validateNames returns an error if two machines or two rules have the same name, or if a machine has no title for its
// page.
func validateNames(capabilities []Capability) error {
	machines, rules := map[string]bool{}, map[string]bool{}
	for _, rule := range slices.Concat(firstRules(), lastRules()) {
		rules[rule.Name] = true
	}
	for _, capability := range capabilities {
		if m := capability.Machine; m != nil {
			if machines[m.Name()] {
				return fmt.Errorf("there are two machines %q; each needs a name of its own", m.Name())
			}
			if m.Table().Title == "" {
				return fmt.Errorf("the table of the machine %q has no title for its page", m.Name())
			}
			machines[m.Name()] = true
		}
		for _, rule := range capability.Rules {
			if rules[rule.Name] {
				return fmt.Errorf("there are two rules %q; each needs a name of its own", rule.Name)
			}
			rules[rule.Name] = true
		}
	}
	return nil
}

// validate returns an error if the kind refers to a machine or rule that does not exist, because then no rule would
// hold its actions.
func (c *cache) validate(kind *ActionKind) error {
	if c.machines[kind.Machine] == nil {
		return fmt.Errorf("actions of kind %q are about things of machine %q, which does not exist", kind.Name, kind.Machine)
	}
	for _, name := range kind.Rules {
		if c.rule(name) == nil {
			return fmt.Errorf("actions of kind %q obey rule %q, which does not exist", kind.Name, name)
		}
	}
	if (kind.Turn != "") != slices.Contains(kind.Rules, RuleOneAtATime) {
		return fmt.Errorf("actions of kind %q must have both rule %s and a Turn, or neither", kind.Name, RuleOneAtATime)
	}
	return nil
}

func (c *cache) stepRules(kind *ActionKind) []string {
	var names []string
	for _, name := range kind.Rules {
		if !c.rule(name).ToBegin {
			names = append(names, name)
		}
	}
	return names
}

// rule returns the first rule with this name, or nil.
func (c *cache) rule(name string) *Rule {
	for i := range c.rules {
		if c.rules[i].Name == name {
			return &c.rules[i]
		}
	}
	return nil
}

// RuleNames returns the names of all rules, each once.
func (s *State) RuleNames() []string {
	var names []string
	for _, rule := range s.cache.rules {
		if !slices.Contains(names, rule.Name) {
			names = append(names, rule.Name)
		}
	}
	return names
}
