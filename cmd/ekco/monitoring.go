package main

import (
	"github.com/replicatedhq/ekco/actions"
	actionsmonitoring "github.com/replicatedhq/ekco/actions/monitoring"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	fsmmonitoring "github.com/replicatedhq/ekco/fsm/monitoring"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// monitoringOf returns the capability for the replicas of Prometheus and Alertmanager.
func monitoringOf(c cluster) ring.Capability {
	capability := ring.Capability{Fsm: fsmmonitoring.Capability(), Words: fsmmonitoring.Words}
	return ring.WithObjects(capability, actionsmonitoring.Object(c.objects), "", func(cluster kube.API, changed func()) actions.Definition {
		return actionsmonitoring.New(c.objects, cluster, fsmmonitoring.Replicas, changed)
	}, journal.MonitoringPrometheus, journal.MonitoringAlertmanager)
}
