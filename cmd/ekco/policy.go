package main

import (
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/config"
)

// policyOf returns the part of the settings that decisions depend on.
func policyOf(cfg config.Config) fsm.Policy {
	nodes := fsmnode.Policy{
		ClearDeadNodes:    cfg.ClearDeadNodes,
		PurgeDeadNodes:    cfg.PurgeDeadNodes,
		ClearAfter:        cfg.ClearAfter,
		PurgeAfter:        cfg.NodeUnreachableToleration,
		PodGrace:          cfg.PodTerminationGrace,
		MinReadyPrimaries: cfg.MinReadyMasterNodes,
		MinReadyWorkers:   cfg.MinReadyWorkerNodes,
		MaxUnknown:        fsmnode.MaxUnknown(cfg.MaxUnknownNodes),
		MaintainRook:      cfg.MaintainRookStorageNodes,
	}
	return nodes.In(fsm.Policy{Settling: cfg.SettlingTime, Cooldown: cfg.PurgeCooldown, DryRun: cfg.DryRun})
}
