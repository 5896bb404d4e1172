package main

import (
	"context"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsrook "github.com/replicatedhq/ekco/actions/rook"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	rooksource "github.com/replicatedhq/ekco/observers/rook"
)

// cephInterval is the shortest interval of polling Ceph while nothing changes, because each poll starts processes in
// the tools pod.
const cephInterval = time.Minute

// rookOf returns the capability for Rook's storage.
func rookOf(c cluster) ring.Capability {
	custom, changes := rook.NewCustom(c.rooks), &rooksource.Changes{}
	policy := rookPolicy(c.cfg)
	return ring.Capability{
		Fsm: fsmrook.Capability(), Policy: policy, Words: fsmrook.Words,
		Actions: func(api kube.API) []actions.Definition {
			return actionsrook.New(actionsrook.Dependencies{
				Rook: custom, Ceph: c.outside.ceph, Nodes: api, IsLowSpaceCheck: fsmrook.IsLowSpaceCheck, Changed: changes.Look,
				Removed: func(ctx context.Context) bool {
					found, err := c.outside.rook.Detect(ctx)
					return err == nil && found.Gone
				},
			})
		},
		Sources: func(s *fsm.State) []observers.Source {
			resources, ofCeph := rooksource.New(rooksource.Options{
				Rook: custom, Ceph: c.outside.ceph, Pools: rookPools(c.cfg), Off: policy.Off,
				Former: fsmrook.Unconfigured(s, rookPools(c.cfg)), Changes: changes,
				CephInterval: max(c.cfg.ReconcileInterval, cephInterval),
				OSDPods:      c.kube.PodsLabelled(rook.Namespace, rook.OSDLabel, rook.OSDApp),
				Known:        func(of journal.Subject) map[string]journal.RookFacts { return fsmrook.Known(s, of) },
			})
			c.hostRemoved.Over(ofCeph[0])
			return append(c.nodesChanged.Also(resources...), ofCeph...)
		},
	}
}

// rookPolicy returns the settings for decisions about Rook's storage.
func rookPolicy(cfg config.Config) fsmrook.Policy {
	policy := fsmrook.Policy{
		UserManaged: cfg.RookStorageNodes != "",
		MinCopies:   cfg.MinCephPoolReplication, MaxCopies: cfg.MaxCephPoolReplication,
		Pools: rookPools(cfg),
	}
	policy.Label, policy.Value, _ = strings.Cut(cfg.RookStorageNodesLabel, "=")
	if !cfg.MaintainRookStorageNodes {
		policy.Off = "maintain_rook_storage_nodes is off"
	}
	return policy
}

// rookPools returns the custom resources of the pools that EKCO manages.
func rookPools(cfg config.Config) []journal.Subject {
	var pools []journal.Subject
	for _, pool := range []struct{ kind, name string }{
		{journal.KindCephBlockPool, cfg.CephBlockPool},
		{journal.KindCephFilesystem, cfg.CephFilesystem},
		{journal.KindCephObjectStore, cfg.CephObjectStore},
	} {
		if pool.name != "" {
			pools = append(pools, journal.RookPools(pool.kind, pool.name))
		}
	}
	return pools
}
