package fsm

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Terms are those on which the steps of a kind of action run.
type Terms struct {
	// Rules are asked again before each step of what EKCO began by itself: those that
	// the kind lists, but for the ones that are only about beginning.
	Rules []string
	// Domains are what its steps may take.
	Domains []string
}

// Standing returns the terms of each kind of action. It returns an error for a kind that could obey nothing:
// twice there, of a machine or with a rule that there is not, or one that has its turn
// and does not say so.
func Standing(capabilities ...Capability) (map[journal.ActionKind]Terms, error) {
	if err := distinct(capabilities); err != nil {
		return nil, err
	}
	cache, standing := newCache(capabilities), map[journal.ActionKind]Terms{}
	for _, capability := range capabilities {
		for _, kind := range capability.Kinds {
			if _, twice := standing[kind.Name]; twice {
				return nil, fmt.Errorf("actions of kind %q are defined twice; each kind belongs to one capability", kind.Name)
			}
			if err := cache.fits(&kind); err != nil {
				return nil, err
			}
			standing[kind.Name] = Terms{Rules: cache.standing(&kind), Domains: kind.Domains}
		}
	}
	return standing, nil
}

// distinct reports machines or rules of one name: of those the last one, or each of them,
// would be asked about things of another. A machine without a title has no page.
func distinct(capabilities []Capability) error {
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

// fits reports what the kind refers to and is not there: no rule would hold its actions
// back then, without a word.
func (c *cache) fits(kind *ActionKind) error {
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

func (c *cache) standing(kind *ActionKind) []string {
	var names []string
	for _, name := range kind.Rules {
		if !c.rule(name).ToBegin {
			names = append(names, name)
		}
	}
	return names
}

// rule returns a rule of the name, or nil.
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
