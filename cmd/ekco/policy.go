package main

import (
	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// policyOf returns the settings for decisions of the engine. Each capability has its own settings.
func policyOf(cfg config.Config) fsm.Policy {
	return fsm.Policy{Settling: cfg.SettlingTime, Cooldown: cfg.PurgeCooldown, DryRun: cfg.DryRun}
}

// retryPolicy shortens the retries of failed preflights if EKCO polls more often than every 5 s, because preflights
// also read objects that EKCO may not be able to watch.
func retryPolicy(cfg config.Config) actions.RetryPolicy {
	first := min(cfg.ReconcileInterval, actions.DefaultHoldInitial)
	return actions.RetryPolicy{HoldInitial: first, HoldMax: min(6*first, actions.DefaultHoldMax)}
}
