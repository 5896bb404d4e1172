// Package monitoring is the source of facts about Prometheus and Alertmanager. EKCO has only "get" permission, so it
// reads each by name at intervals, and immediately after it has changed one.
package monitoring

import (
	"context"

	"github.com/replicatedhq/ekco/internal/monitoring"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// New returns a source for each object. known are the facts in the journal, by name.
func New(api monitoring.API, known map[string]journal.MonitoringFacts) []observers.Source {
	return []observers.Source{
		source(api, journal.MonitoringPrometheus, known),
		source(api, journal.MonitoringAlertmanager, known),
	}
}

func source(api monitoring.API, of journal.Subject, known map[string]journal.MonitoringFacts) observers.Source {
	return observers.PollOne(observers.PolledOne[journal.MonitoringFacts]{
		Machine: "monitoring", Subject: of, Known: known,
		Get: func(ctx context.Context) (journal.MonitoringFacts, error) { return api.Read(ctx, of) },
		UID: func(facts journal.MonitoringFacts) string { return facts.UID },
	})
}
