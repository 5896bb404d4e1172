package main

import (
	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// policyOf returns the part of the settings that the engine's decisions depend on;
// the capabilities bring theirs.
func policyOf(cfg config.Config) fsm.Policy {
	return fsm.Policy{Settling: cfg.SettlingTime, Cooldown: cfg.PurgeCooldown, DryRun: cfg.DryRun}
}

// retryPolicy repeats a failed preflight sooner if EKCO polls more often than every 5 s: preflights, too,
// read what may not be watched.
func retryPolicy(cfg config.Config) actions.RetryPolicy {
	first := min(cfg.ReconcileInterval, actions.DefaultHoldInitial)
	return actions.RetryPolicy{HoldInitial: first, HoldMax: min(6*first, actions.DefaultHoldMax)}
}
