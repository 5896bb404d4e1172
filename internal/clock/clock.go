package clock

import (
	"sync/atomic"
	"time"
)

// Tolerance is how far the machine's clock may be away before that is worth
// moving the own one.
const Tolerance = 10 * time.Second

// Source is where a clock has its time from.
type Source struct {
	// Wall reads the machine's clock.
	Wall func() time.Time
	// Passed reads the monotonic clock: how long it has run since some moment
	// that does not change.
	Passed func() time.Duration
	// Boot names the boot of the machine, if that moment is its beginning, and is
	// empty otherwise.
	Boot string
}

// Clock is EKCO's clock. Make one with [New]. It is safe for concurrent use.
type Clock struct {
	source Source
	// zero is what the clock showed, or would have shown, when the monotonic
	// clock was at zero.
	zero atomic.Pointer[time.Time]
}

// New returns a clock that shows what the source's does now.
func New(source Source) *Clock {
	c := &Clock{source: source}
	c.setZero(source.Wall().Round(0).Add(-source.Passed()))
	return c
}

func (c *Clock) setZero(zero time.Time) {
	zero = zero.UTC()
	c.zero.Store(&zero)
}

// Now returns the time, in UTC. It never goes backwards but by [Clock.Move].
func (c *Clock) Now() time.Time { return c.zero.Load().Add(c.source.Passed()) }

// Drift returns how far the machine's clock is ahead of this one.
func (c *Clock) Drift() time.Duration { return c.source.Wall().Round(0).Sub(c.Now()) }

// Move sets the clock forward, or back.
func (c *Clock) Move(by time.Duration) { c.setZero(c.zero.Load().Add(by)) }

// Uptime returns the name of the machine's boot and how long its monotonic
// clock has run since. The name is empty when that is not known.
func (c *Clock) Uptime() (boot string, since time.Duration) { return c.source.Boot, c.source.Passed() }

// Continue lets the clock go on from another one, of which is known what it
// showed at the beginning of a boot. It does nothing if that was another boot of
// the machine, or of another machine.
func (c *Clock) Continue(boot string, zero time.Time) {
	if boot != "" && boot == c.source.Boot && !zero.IsZero() {
		c.setZero(zero)
	}
}
