package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Effect is a change that a caller asked for and that got through.
type Effect struct {
	Name string
	// Changed is false when everything was already as it should be, or when the
	// change was refused.
	Changed bool
}

// Controls are a test's hold on a simulation. Make them with [NewControls]. The
// methods are safe for concurrent use; the fields must be set before the first
// call.
type Controls struct {
	// BeforeEffect and AfterEffect, when set, are called around each call that
	// changes something, with the effect's name, which is the simulation's to
	// choose. They are called outside of all locks, and only when the call gets
	// through.
	BeforeEffect, AfterEffect func(effect string)

	unavailable error

	mu      sync.Mutex
	effects []Effect
	lost    map[string]bool
	latency time.Duration
}

// NewControls returns controls of a simulation that answers at once. The error
// is what a caller sees whose answer was lost.
func NewControls(unavailable error) Controls {
	return Controls{unavailable: unavailable, lost: make(map[string]bool)}
}

// Effects returns what got through, in order.
func (c *Controls) Effects() []Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.effects)
}

// Count returns how many calls of an effect got through, whether or not they
// changed anything.
func (c *Controls) Count(effect string) int {
	count := 0
	for _, e := range c.Effects() {
		if e.Name == effect {
			count++
		}
	}
	return count
}

// LoseAnswer makes the next call of an effect happen and then fail, as when the
// connection breaks before the answer arrives.
func (c *Controls) LoseAnswer(effect string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[effect] = true
}

// SetLatency makes every call take that long.
func (c *Controls) SetLatency(latency time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = latency
}

// Set sets what a lock guards.
func Set[T any](guard sync.Locker, field *T, value T) {
	guard.Lock()
	defer guard.Unlock()
	*field = value
}

// Pass takes the time of a call. Its error is the context's.
func Pass(ctx context.Context, c *Controls) error {
	c.mu.Lock()
	latency := c.latency
	c.mu.Unlock()
	return Wait(ctx, latency)
}

// Wait lets time pass. Its error is the context's, also when no time passes.
func Wait(ctx context.Context, span time.Duration) error {
	if span > 0 {
		timer := time.NewTimer(span)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Do runs f, which changes the simulation, between the hooks, and records it.
// Who sees the change can see the effect recorded as well: f must not use the
// controls. The error names the call; it is that of f unless the answer is lost.
func Do(c *Controls, call, effect string, f func() (changed bool, err error)) error {
	if c.BeforeEffect != nil {
		c.BeforeEffect(effect)
	}
	lost, err := do(c, effect, f)
	if c.AfterEffect != nil {
		c.AfterEffect(effect)
	}
	if lost {
		return fmt.Errorf("%s: the answer was lost: %w", call, c.unavailable)
	}
	return err
}

func do(c *Controls, effect string, f func() (changed bool, err error)) (lost bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := f()
	c.effects = append(c.effects, Effect{Name: effect, Changed: changed})
	lost = c.lost[effect]
	delete(c.lost, effect)
	return lost, err
}
