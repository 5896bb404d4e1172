package fsm

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// cache has values that are computed from the state and from this EKCO's capabilities. Snapshots do not contain it.
type cache struct {
	capabilities []Capability
	// machines has the machines of things, by name. action has the transitions of actions.
	machines map[string]*machine
	action   checker
	kinds    map[journal.ActionKind]*ActionKind
	rules    []Rule
	// named lists the keys of all things with a name, in the order in which they were added to the cache.
	named map[thingName][]string
	// shared has the ids of actions whose maps a reader may use; see [State.OpenActions].
	shared map[string]bool
	// sums has the result of [State.Sum] for each machine, until one of its things changes.
	sums map[string]any
	// counts has the result of [State.Count] for each machine, until one of its things changes.
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

// machine returns the machine with this name. A thing of an unknown machine is a programming error.
func (c *cache) machine(name string) *machine {
	m := c.machines[name]
	if m == nil {
		panic("fsm: no machine " + name)
	}
	return m
}

func (c *cache) index(key string, t *Thing) {
	name := thingName{t.Machine(), t.Name}
	c.named[name] = append(c.named[name], key)
}

func (c *cache) unindex(key string, t *Thing) {
	name := thingName{t.Machine(), t.Name}
	c.named[name] = slices.DeleteFunc(c.named[name], func(other string) bool { return other == key })
	if len(c.named[name]) == 0 {
		delete(c.named, name)
	}
}

// Sum returns the result of the function sum, which must depend only on the machine's things. It caches the result
// until one of these things changes.
func (s *State) Sum(machine string, sum func() any) any {
	known, ok := s.cache.sums[machine]
	if !ok {
		known = sum()
		s.cache.sums[machine] = known
	}
	return known
}

// Changed clears the cached results of [State.Sum] and [State.Count] for the machine.
func (s *State) Changed(machine string) {
	delete(s.cache.sums, machine)
	delete(s.cache.counts, machine)
}
