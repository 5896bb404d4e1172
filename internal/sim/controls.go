package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Effect is a change by a call that reached the simulation.
type Effect struct {
	Name string
	// Changed is false if the call changed nothing, or was refused.
	Changed bool
}

// Controls control a simulation. Make them with [NewControls]. The methods are safe for concurrent use; the
// fields must be set before the first call.
type Controls struct {
	// BeforeEffect and AfterEffect, if set, are called around each change that reaches the simulation, with the
	// effect's name, which the simulation chooses. They are called without locks.
	BeforeEffect, AfterEffect func(effect string)

	unavailable error

	mu      sync.Mutex
	effects []Effect
	lost    map[string]bool
	latency time.Duration
}

// NewControls returns controls of a simulation that answers at once. The caller of a lost answer gets the error
// unavailable.
func NewControls(unavailable error) Controls {
	return Controls{unavailable: unavailable, lost: make(map[string]bool)}
}

// Effects returns the effects, in order.
func (c *Controls) Effects() []Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.effects)
}

// Count returns how often an effect occurred, whether or not it changed anything.
func (c *Controls) Count(effect string) int {
	count := 0
	for _, e := range c.Effects() {
		if e.Name == effect {
			count++
		}
	}
	return count
}

// LoseAnswer makes the next call of an effect happen and then fail, as if the connection broke before the
// answer.
func (c *Controls) LoseAnswer(effect string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[effect] = true
}

// SetLatency sets the duration of every call.
func (c *Controls) SetLatency(latency time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = latency
}

// Set sets a field under its lock.
func Set[T any](guard sync.Locker, field *T, value T) {
	guard.Lock()
	defer guard.Unlock()
	*field = value
}

// Pass waits for the latency of a call. Its error is the context's.
func Pass(ctx context.Context, c *Controls) error {
	c.mu.Lock()
	latency := c.latency
	c.mu.Unlock()
	return Wait(ctx, latency)
}

// Wait waits. It returns the context's error, even if span is zero.
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

// Do runs f, which changes the simulation, between the hooks. It records the effect under the same lock, so f must not
// use the controls. It returns the error of f. If the answer is lost, it returns an error that names the call instead.
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
