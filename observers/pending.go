package observers

import "time"

// pending is a set of keys whose facts may differ from the journal, in the
// order in which they first changed.
type pending struct {
	order   []string
	changes map[string]change
}

// change says when and how a difference was found: of several changes of a key, the first time and the last way.
type change struct {
	// at is zero for a difference that a complete read found.
	at time.Time
	// firstLook: the first complete read after a start found it.
	firstLook bool
}

func (p *pending) any() bool { return len(p.order) > 0 }

func (p *pending) add(key string, c change) {
	if p.changes == nil {
		p.changes = make(map[string]change)
	}
	earlier, ok := p.changes[key]
	if !ok {
		p.order = append(p.order, key)
	} else if !earlier.at.IsZero() {
		c.at = earlier.at
	}
	p.changes[key] = c
}

// take returns the set and leaves an empty one.
func (p *pending) take() pending {
	taken := *p
	*p = pending{}
	return taken
}

// restore puts back what was taken, before what was added since.
func (p *pending) restore(taken pending) {
	since := p.take()
	*p = taken
	for _, key := range since.order {
		p.add(key, since.changes[key])
	}
}

// Earlier returns the earlier of two times; zero means unknown.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
