package main

import (
	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// policyOf returns the settings that the engine's decisions depend on; each capability has its own.
func policyOf(cfg config.Config) fsm.Policy {
	return fsm.Policy{Settling: cfg.SettlingTime, Cooldown: cfg.PurgeCooldown, DryRun: cfg.DryRun}
}

// retryPolicy retries a failed preflight sooner if EKCO polls more often than every 5 s: preflights, too, read what
// EKCO may not be able to watch.
func retryPolicy(cfg config.Config) actions.RetryPolicy {
	first := min(cfg.ReconcileInterval, actions.DefaultHoldInitial)
	return actions.RetryPolicy{HoldInitial: first, HoldMax: min(6*first, actions.DefaultHoldMax)}
}
