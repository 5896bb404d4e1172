package main

import (
	"github.com/replicatedhq/ekco/actions"
	actionsmonitoring "github.com/replicatedhq/ekco/actions/monitoring"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmmonitoring "github.com/replicatedhq/ekco/fsm/monitoring"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/monitoring"
	"github.com/replicatedhq/ekco/observers"
	sources "github.com/replicatedhq/ekco/observers/monitoring"
)

// monitoringOf returns the capability for the replicas of Prometheus and Alertmanager.
func monitoringOf(c cluster) ring.Capability {
	api, nudge := monitoring.NewClient(c.objects), &observers.Nudge{}
	return ring.Capability{
		Fsm:   fsmmonitoring.Capability(),
		Words: fsmmonitoring.Words,
		Actions: func(cluster kube.API) []actions.Definition {
			return []actions.Definition{actionsmonitoring.New(api, cluster, fsmmonitoring.Replicas, nudge.Look)}
		},
		Sources: func(s *fsm.State) []observers.Source {
			return nudge.Over(sources.New(api, fsmmonitoring.Known(s))...)
		},
	}
}
