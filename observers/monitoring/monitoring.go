// Package monitoring is where facts of Prometheus and Alertmanager come from. Only "get"
// is granted, so each is read by its name now and then, and at once when EKCO has
// changed it.
package monitoring

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/replicatedhq/ekco/internal/monitoring"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Machine is the name of the machine that the facts are for.
const Machine = "monitoring"

// New returns a source of each object. known is what the journal has, by name.
func New(api monitoring.API, known map[string]journal.MonitoringFacts) []observers.Source {
	return []observers.Source{
		source(api, journal.MonitoringPrometheus, known),
		source(api, journal.MonitoringAlertmanager, known),
	}
}

func source(api monitoring.API, of journal.Subject, known map[string]journal.MonitoringFacts) observers.Source {
	own := map[string]journal.MonitoringFacts{}
	if facts, is := known[of.Name]; is {
		own[of.Name] = facts
	}
	draft := func(event journal.Type, facts journal.MonitoringFacts, payload journal.Payload) journal.Draft {
		subject := of
		subject.UID = facts.UID
		return journal.Draft{Type: event, Actor: "observer/" + Machine, Subject: subject, Payload: payload}
	}
	return observers.PollOne(observers.PolledOne[journal.MonitoringFacts]{
		Name: of.Kind + " " + of.Name, Key: of.Name,
		Get: func(ctx context.Context) (journal.MonitoringFacts, error) { return api.Read(ctx, of) },
		Noun: observers.Noun[journal.MonitoringFacts]{
			Observed: func(_ string, facts journal.MonitoringFacts) journal.Draft {
				encoded, err := json.Marshal(facts)
				if err != nil {
					panic(err) // no value of this type cannot be encoded
				}
				return draft(journal.TypeThingObserved, facts, journal.ThingObserved{Machine: Machine, Facts: encoded})
			},
			Gone: func(_ string, facts journal.MonitoringFacts, reason string) journal.Draft {
				return draft(journal.TypeThingGone, facts, journal.ThingGone{Machine: Machine, Reason: reason})
			},
			Equal: func(a, b journal.MonitoringFacts) bool { return a == b },
			UID:   func(facts journal.MonitoringFacts) string { return facts.UID },
			Known: maps.All(own),
		},
	})
}
