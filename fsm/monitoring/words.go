package monitoring

import (
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words are the words for both objects, and for what is done to them.
var Words = words.Component{
	Name:    Machine,
	Actions: []words.Action{{Kind: journal.ActionScaleMonitoring, Verb: "scale", Noun: "Prometheus or Alertmanager"}},
	APIVersions: map[string]string{
		journal.MonitoringPrometheus.Kind: "monitoring.coreos.com/v1", journal.MonitoringAlertmanager.Kind: "monitoring.coreos.com/v1",
	},
	Rows: append(rows(journal.MonitoringPrometheus.Kind), rows(journal.MonitoringAlertmanager.Kind)...),
}

func rows(kind string) []words.Row {
	return []words.Row{
		{
			Type: journal.TypeThingTransitioned, About: kind,
			Sentence: words.Of(words.Transitioned),
			Log: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Line {
				return words.Info("monitoring is "+string(p.To), "before", p.From, "reason", p.Reason)
			}),
			Kubernetes: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Note {
				return words.Note{Reason: kind + string(p.To), Message: p.Reason}
			}),
		},
		{Type: journal.TypeThingObserved, About: kind, Tone: words.Faint, Sentence: words.Of(seen)},
		words.Gone(kind),
	}
}

func seen(e journal.Event, p *journal.ThingObserved) string {
	var facts journal.MonitoringFacts
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return ""
	}
	return fmt.Sprintf("%s has %s", words.Object(e.Subject), words.Count(facts.Replicas, "replica"))
}
