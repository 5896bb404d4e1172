package main

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// policyOf returns the part of the settings that the engine's decisions depend on;
// the capabilities bring theirs.
func policyOf(cfg config.Config) fsm.Policy {
	return fsm.Policy{Settling: cfg.SettlingTime, Cooldown: cfg.PurgeCooldown, DryRun: cfg.DryRun}
}
