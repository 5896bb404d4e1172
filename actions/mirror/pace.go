package mirror

import "time"

// A change is written at once if the last round of writes was roundInterval ago. Before, it takes one of maxExtra
// rounds, each of which is there again after extraInterval; the last of them are for those who wait for the
// mirror. Together these are at most 20 rounds in any minute, and the mirror is less than 5 s behind.
const (
	roundInterval = 4800 * time.Millisecond
	extraInterval = 30 * time.Second
	maxExtra      = 5
	reservedExtra = 3
)

// pace spreads rounds of writes. Its zero value has had none.
type pace struct {
	// next is when a round may begin that is no extra one. At free, all extra ones are there again.
	next, free time.Time
}

// take begins a round, or returns how long to wait with it.
func (p *pace) take(now time.Time, urgent bool) time.Duration {
	if wait := p.next.Sub(now); wait > 0 {
		used := (maxExtra - 1) * extraInterval
		if !urgent {
			used -= reservedExtra * extraInterval
		}
		if p.free.Before(now) {
			p.free = now
		}
		if p.free.Sub(now) > used {
			return wait
		}
		p.free = p.free.Add(extraInterval)
	}
	p.next = now.Add(roundInterval)
	return 0
}
