package fsm

import (
	"maps"
	"time"
)

// Policy is the part of the configuration that decisions depend on.
type Policy struct {
	// Settling is for how long EKCO must observe the cluster without interruption before it acts automatically.
	Settling time.Duration
	// Cooldown is the minimum time between two automatic actions of a kind that obeys [RuleCooldown] and does not set
	// [ActionKind.Cooldown].
	Cooldown time.Duration
	// DryRun makes every automatic action a dry run.
	DryRun bool
	// Passive makes Decide draft only transitions, and neither start actions nor record refusals. Commands that run
	// without an operator use it.
	Passive bool
	// Of has the settings of each machine, by the machine's name. The machine defines their type.
	Of map[string]any
}

// DefaultPolicy returns the policy for an empty configuration, without the settings of machines; see [Policy.With].
func DefaultPolicy() Policy {
	return Policy{Settling: 15 * time.Second, Cooldown: 10 * time.Minute}
}

// With returns a copy of the policy with the settings of one machine.
func (p Policy) With(machine string, settings any) Policy {
	p.Of = maps.Clone(p.Of)
	if p.Of == nil {
		p.Of = map[string]any{}
	}
	p.Of[machine] = settings
	return p
}
