package mirror

import "time"

// EKCO writes a change at once if the last round of writes was at least roundInterval ago. For an earlier round it
// needs one of maxExtra extra rounds, each of which is available again after extraInterval. reservedExtra of them are
// only for callers of Sync. Together these are at most 20 rounds in any minute, and the mirror lags less than 5 s.
const (
	roundInterval = 4800 * time.Millisecond
	extraInterval = 30 * time.Second
	maxExtra      = 5
	reservedExtra = 3
)

// pace limits rounds of writes. The zero value is ready to use.
type pace struct {
	// next is when the next normal round may begin. At free, all extra rounds are available again.
	next, free time.Time
}

// takeRound begins a round and returns 0, or returns how long to wait.
func (p *pace) takeRound(now time.Time, urgent bool) time.Duration {
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
