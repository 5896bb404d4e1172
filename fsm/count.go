package fsm

import "iter"

// count has the results of [State.Count] for a machine.
type count struct{ present, ready int }

// Count returns how many things of a machine exist, and how many of them are ready, according to the machine's Counts.
// It returns zeros for an unknown machine.
func (s *State) Count(machine string) (present, ready int) {
	c, known := s.cache.counts[machine]
	if !known {
		c = s.countThings(machine)
		s.cache.counts[machine] = c
	}
	return c.present, c.ready
}

func (s *State) countThings(name string) (c count) {
	for _, ready := range s.Members(name) {
		c.present++
		if ready {
			c.ready++
		}
	}
	return c
}

// Members yields the things of a machine that [State.Count] counts, in no order. The bool says whether the thing is
// ready.
func (s *State) Members(machine string) iter.Seq2[*Thing, bool] {
	return func(yield func(*Thing, bool) bool) {
		m := s.cache.machines[machine]
		if m == nil {
			return
		}
		for _, t := range s.Things {
			if t.machine != m {
				continue
			}
			if present, ready := m.Counts(t); present && !yield(t, ready) {
				return
			}
		}
	}
}
