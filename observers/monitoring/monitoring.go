// Package monitoring is where facts of Prometheus and Alertmanager come from. Only "get"
// is granted, so each is read by its name now and then, and at once when EKCO has
// changed it.
package monitoring

import (
	"context"

	"github.com/replicatedhq/ekco/internal/monitoring"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// New returns a source of each object. known is what the journal has, by name.
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
