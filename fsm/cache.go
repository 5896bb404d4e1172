package fsm

import "github.com/replicatedhq/ekco/journal"

// cache is derived from State's data. It is made when first needed and never
// part of a snapshot.
type cache struct {
	node, action machine
	// kinds are the kinds of action, by name.
	kinds map[journal.ActionKind]*ActionKind
	// byName lists the UIDs of all machines of a node name, in the order in
	// which they were first seen since the cache was made.
	byName map[string][]string
	// shared marks the actions whose maps somebody else may hold.
	shared map[string]bool
	// counts is nil when a node may have changed since they were counted.
	counts *counts
}

func (s *State) cached() *cache {
	if s.cache != nil {
		return s.cache
	}
	s.cache = &cache{
		node:   newMachine(NodeTable()),
		action: newMachine(ActionTable()),
		kinds:  map[journal.ActionKind]*ActionKind{},
		byName: make(map[string][]string, len(s.Nodes)),
		shared: map[string]bool{},
	}
	for uid, n := range s.Nodes {
		s.cache.byName[n.Name] = append(s.cache.byName[n.Name], uid)
	}
	for _, kind := range Kinds() {
		s.cache.kinds[kind.Name] = &kind
	}
	return s.cache
}

// nodesChanged makes the next look count the nodes anew.
func (s *State) nodesChanged() { s.cached().counts = nil }
