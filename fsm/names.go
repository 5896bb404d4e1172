package fsm

import (
	"iter"
	"maps"

	"github.com/replicatedhq/ekco/journal"
)

// MachineStates yields each combination of a machine's name and a state of its table, in no order.
func (s *State) MachineStates() iter.Seq2[string, journal.State] {
	return func(yield func(string, journal.State) bool) {
		for name, machine := range s.cache.machines {
			for _, state := range machine.table.allStates() {
				if !yield(name, journal.State(state)) {
					return
				}
			}
		}
	}
}

// Kinds yields each kind of action, in no order.
func (s *State) Kinds() iter.Seq[journal.ActionKind] { return maps.Keys(s.cache.kinds) }

// KindRules yields each combination of a kind of action and a rule that it obeys, in no order.
func (s *State) KindRules() iter.Seq2[journal.ActionKind, string] {
	return func(yield func(journal.ActionKind, string) bool) {
		for name, kind := range s.cache.kinds {
			for _, rule := range s.RuleNames() {
				if kind.obeys(rule) && !yield(name, rule) {
					return
				}
			}
		}
	}
}

// ActionStatuses returns the statuses that an open action can have.
func ActionStatuses() []journal.ActionStatus {
	return []journal.ActionStatus{Requested, Running, Held, Stalled, Cancelling}
}
