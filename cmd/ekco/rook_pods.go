package main

import (
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsrookpods "github.com/replicatedhq/ekco/actions/rookpods"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmrookpods "github.com/replicatedhq/ekco/fsm/rookpods"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	rookpodssource "github.com/replicatedhq/ekco/observers/rookpods"
)

// rookPodsOf returns the capability for the settings of Rook's pods.
func rookPodsOf(c cluster) ring.Capability {
	pods, nudge, policy := rook.NewPods(c.rooks), &observers.Nudge{}, rookPodsPolicy(c.cfg)
	return ring.Capability{
		Fsm: fsmrookpods.Capability(), Policy: policy, Words: fsmrookpods.Words,
		Actions: func(api kube.API) []actions.Definition {
			return actionsrookpods.New(actionsrookpods.Dependencies{Pods: pods, Nodes: api, Changed: nudge.Look})
		},
		Sources: func(s *fsm.State) []observers.Source {
			return nudge.Over(rookpodssource.New(rookpodssource.Options{
				Pods: rook.NewPods(c.rooks.MaxAge(sharedReadMaxAge(c.cfg.ReconcileInterval))), Filesystem: c.cfg.CephFilesystem,
				CSIOff: policy.CSIOff, MDSOff: policy.MDSOff, PriorityOff: policy.PriorityOff,
				Known: func(kinds ...string) map[journal.Subject]journal.RookPodsFacts { return fsmrookpods.Known(s, kinds...) },
			})...)
		},
	}
}

// sharedReadMaxAge returns the maximum age of a cached object that two sources read once per interval. It is longer
// than the interval, because the sources do not read at the same moment.
func sharedReadMaxAge(interval time.Duration) time.Duration { return interval + interval/4 }

// rookPodsPolicy returns the settings for decisions about Rook's pods.
func rookPodsPolicy(cfg config.Config) fsmrookpods.Policy {
	policy := fsmrookpods.Policy{Class: cfg.RookPriorityClass}
	if !cfg.ReconcileCephCSIResources {
		policy.CSIOff = "reconcile_ceph_csi_resources is off"
	}
	switch {
	case !cfg.ReconcileRookMDSPlacement:
		policy.MDSOff = "reconcile_rook_mds_placement is off"
	case cfg.CephFilesystem == "":
		policy.MDSOff = "ceph_filesystem is empty"
	}
	if policy.Class == "" {
		policy.PriorityOff = "rook_priority_class is empty"
	}
	return policy
}
