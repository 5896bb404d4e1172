package fsm

import (
	"maps"
	"time"
)

// Policy is the part of the configuration that decisions depend on.
type Policy struct {
	// Settling is how long EKCO must have watched without a break.
	Settling time.Duration
	// Cooldown is the least time between two actions of a kind that obeys
	// [RuleCooldown], has none of its own, and that EKCO starts by itself.
	Cooldown time.Duration
	// DryRun marks every action EKCO starts by itself as a dry run.
	DryRun bool
	// Passive lets machines follow their facts and starts nothing by itself; nor
	// are refusals judged then. It is how a command works without an operator.
	Passive bool
	// Of holds what only one machine's decisions depend on, by the machine's name, in
	// the type that the machine defines.
	Of map[string]any
}

// DefaultPolicy returns what holds without any configuration, but for the machines.
func DefaultPolicy() Policy {
	return Policy{Settling: 15 * time.Second, Cooldown: 10 * time.Minute}
}

// With returns the policy with what one machine's decisions depend on.
func (p Policy) With(machine string, of any) Policy {
	p.Of = maps.Clone(p.Of)
	if p.Of == nil {
		p.Of = map[string]any{}
	}
	p.Of[machine] = of
	return p
}
