package fsm

// count is how many things of a machine there are.
type count struct{ present, ready int }

// Count returns how many things of a machine exist, and how many of them are ready. Of
// a machine that this EKCO does not have, or that is not [Counted], there are none.
func (s *State) Count(machine string) (present, ready int) {
	c, known := s.cache.counts[machine]
	if !known {
		c = s.countThings(machine)
		s.cache.counts[machine] = c
	}
	return c.present, c.ready
}

func (s *State) countThings(name string) (c count) {
	m := s.cache.machines[name]
	if m == nil {
		return c
	}
	counted, ok := m.Machine.(Counted)
	if !ok {
		return c
	}
	for _, t := range s.Things {
		if t.machine != m {
			continue
		}
		present, ready := counted.Counts(t)
		if present {
			c.present++
		}
		if present && ready {
			c.ready++
		}
	}
	return c
}
