package clock

import (
	"sync/atomic"
	"time"
)

// Tolerance is the difference from the machine's clock above which EKCO moves its own clock.
const Tolerance = 10 * time.Second

// Source is the clocks of the machine.
type Source struct {
	// Wall reads the machine's clock.
	Wall func() time.Time
	// Passed reads the monotonic clock: how long it has run since a fixed moment.
	Passed func() time.Duration
	// Boot is the id of the machine's boot, if the fixed moment is the start of that boot; otherwise it is empty.
	Boot string
}

// Clock is EKCO's clock. Make one with [New]. It is safe for concurrent use.
type Clock struct {
	source Source
	// zero is the time that this clock showed, or would have shown, when the monotonic clock was at zero.
	zero atomic.Pointer[time.Time]
}

// New returns a clock that shows the source's time now.
func New(source Source) *Clock {
	c := &Clock{source: source}
	c.setZero(source.Wall().Round(0).Add(-source.Passed()))
	return c
}

func (c *Clock) setZero(zero time.Time) {
	zero = zero.UTC()
	c.zero.Store(&zero)
}

// Now returns the time in UTC. Only [Clock.Move] and [Clock.Continue] can set it back.
func (c *Clock) Now() time.Time { return c.zero.Load().Add(c.source.Passed()) }

// Drift returns how far the machine's clock is ahead of this one.
func (c *Clock) Drift() time.Duration { return c.source.Wall().Round(0).Sub(c.Now()) }

// Move sets the clock forward, or back.
func (c *Clock) Move(by time.Duration) { c.setZero(c.zero.Load().Add(by)) }

// Uptime returns the id of the machine's boot and the time since then. The id is empty if it is unknown.
func (c *Clock) Uptime() (boot string, since time.Duration) { return c.source.Boot, c.source.Passed() }

// Continue makes the clock continue an earlier clock of this boot, which showed the time zero at the start of the boot.
// It does nothing if boot is another boot or of another machine.
func (c *Clock) Continue(boot string, zero time.Time) {
	if boot != "" && boot == c.source.Boot && !zero.IsZero() {
		c.setZero(zero)
	}
}
