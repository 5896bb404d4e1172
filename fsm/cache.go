package fsm

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// cache is derived from State's data and from what this EKCO can do. It is made when
// first needed and never part of a snapshot.
type cache struct {
	capabilities []Capability
	// machines are the machines of things, action is that of actions.
	machines map[string]*machine
	action   checker
	// kinds are the kinds of action, by name.
	kinds map[journal.ActionKind]*ActionKind
	rules []Rule
	// named lists the keys of all things of a name, in the order in which they were
	// first seen since the cache was made.
	named map[thingName][]string
	// shared marks the actions whose maps somebody else may hold.
	shared map[string]bool
	// sums is what machines summed up of their things, as long as none changes.
	sums map[string]any
	// counts are how many things of a machine there are, as long as none changes.
	counts map[string]count
}

type thingName struct{ machine, name string }

func newCache(capabilities []Capability) *cache {
	c := &cache{
		capabilities: capabilities,
		machines:     map[string]*machine{},
		action:       newChecker(ActionTable()),
		kinds:        map[journal.ActionKind]*ActionKind{},
		named:        map[thingName][]string{},
		shared:       map[string]bool{},
		sums:         map[string]any{},
		counts:       map[string]count{},
	}
	var own []Rule
	for _, capability := range capabilities {
		if m := capability.Machine; m != nil {
			c.machines[m.Name()] = newMachine(m)
		}
		for _, kind := range capability.Kinds {
			c.kinds[kind.Name] = &kind
		}
		own = append(own, capability.Rules...)
	}
	c.rules = slices.Concat(firstRules(), own, lastRules())
	return c
}

// machine returns the machine of the name. To add a thing of a machine that this EKCO
// does not have is a programmer's mistake.
func (c *cache) machine(name string) *machine {
	m := c.machines[name]
	if m == nil {
		panic("fsm: no machine " + name)
	}
	return m
}

func (c *cache) index(key string, t *Thing) {
	of := thingName{t.Machine(), t.Name}
	c.named[of] = append(c.named[of], key)
}

func (c *cache) unindex(key string, t *Thing) {
	of := thingName{t.Machine(), t.Name}
	c.named[of] = slices.DeleteFunc(c.named[of], func(other string) bool { return other == key })
	if len(c.named[of]) == 0 {
		delete(c.named, of)
	}
}

// Sum returns what sum makes of the machine's things: once, for as long as none of
// them changes.
func (s *State) Sum(machine string, sum func() any) any {
	known, ok := s.cache.sums[machine]
	if !ok {
		known = sum()
		s.cache.sums[machine] = known
	}
	return known
}

// Changed makes the next [State.Sum] and [State.Count] of the machine count anew.
func (s *State) Changed(machine string) {
	delete(s.cache.sums, machine)
	delete(s.cache.counts, machine)
}
