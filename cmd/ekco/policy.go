package main

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// policyOf returns the part of the settings that decisions depend on.
func policyOf(cfg config.Config) fsm.Policy {
	return fsm.Policy{
		ClearDeadNodes:    cfg.ClearDeadNodes,
		PurgeDeadNodes:    cfg.PurgeDeadNodes,
		ClearAfter:        cfg.ClearAfter,
		PurgeAfter:        cfg.NodeUnreachableToleration,
		PodGrace:          cfg.PodTerminationGrace,
		MinReadyPrimaries: cfg.MinReadyMasterNodes,
		MinReadyWorkers:   cfg.MinReadyWorkerNodes,
		MaxUnknown:        fsm.MaxUnknown(cfg.MaxUnknownNodes),
		Settling:          cfg.SettlingTime,
		Cooldown:          cfg.PurgeCooldown,
		DryRun:            cfg.DryRun,
		MaintainRook:      cfg.MaintainRookStorageNodes,
	}
}
