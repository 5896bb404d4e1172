package fsm

import (
	"maps"
	"time"
)

// Policy is the part of the configuration that decisions depend on.
type Policy struct {
	// Settling is how long EKCO must have observed the cluster without interruption.
	Settling time.Duration
	// Cooldown is the minimum time between two actions that EKCO starts itself, of a kind that obeys [RuleCooldown] and
	// has none of its own.
	Cooldown time.Duration
	// DryRun makes every action that EKCO starts itself a dry run.
	DryRun bool
	// Passive lets machines follow their facts, but starts no actions and records no refusals. Commands that work
	// without an operator use it.
	Passive bool
	// Of has each machine's own policy, by the machine's name. The machine defines its type.
	Of map[string]any
}

// DefaultPolicy returns the policy for an empty configuration. It has no policies of machines; see [Policy.With].
func DefaultPolicy() Policy {
	return Policy{Settling: 15 * time.Second, Cooldown: 10 * time.Minute}
}

// With returns the policy with one machine's own policy.
func (p Policy) With(machine string, of any) Policy {
	p.Of = maps.Clone(p.Of)
	if p.Of == nil {
		p.Of = map[string]any{}
	}
	p.Of[machine] = of
	return p
}
