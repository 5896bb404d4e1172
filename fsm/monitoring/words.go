package monitoring

import (
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for both objects and the action that sets their replicas.
var Words = words.Component{
	Name:    Machine,
	Actions: []words.Action{{Kind: journal.ActionScaleMonitoring, Verb: "scale", Noun: "Prometheus or Alertmanager"}},
	APIVersions: map[string]string{
		journal.MonitoringPrometheus.Kind: "monitoring.coreos.com/v1", journal.MonitoringAlertmanager.Kind: "monitoring.coreos.com/v1",
	},
	Rows: append(rows(journal.MonitoringPrometheus.Kind), rows(journal.MonitoringAlertmanager.Kind)...),
}

func rows(kind string) []words.Row {
	observed := words.Observed(kind, func(facts journal.MonitoringFacts) string {
		return "has " + words.Count(facts.Replicas, "replica")
	})
	observed.Wakes = false
	return []words.Row{words.Noted(kind, "monitoring", kind), observed, words.Gone(kind)}
}
