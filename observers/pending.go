package observers

import "time"

// pending is a set of keys whose facts may differ from the journal, in the order of their first change.
type pending struct {
	order   []string
	changes map[string]change
}

// change describes when and how a difference was found. For several changes of a key, it has the time of the first and
// the kind of the last.
type change struct {
	// at is zero if a complete read found the difference.
	at time.Time
	// firstLook is true if the first complete read after a start found the difference.
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

// take returns the set and replaces it by an empty one.
func (p *pending) take() pending {
	taken := *p
	*p = pending{}
	return taken
}

// restore puts back a set that take returned, in front of the keys that were added since.
func (p *pending) restore(taken pending) {
	since := p.take()
	*p = taken
	for _, key := range since.order {
		p.add(key, since.changes[key])
	}
}

// Earlier returns the earlier of two times. Zero means unknown.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
