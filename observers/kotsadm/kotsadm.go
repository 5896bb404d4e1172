// Package kotsadm is where facts of kotsadm's database come from: its StatefulSet is read
// by its name now and then, since a watch is not granted, and at once when EKCO has
// changed it.
package kotsadm

import (
	"encoding/json"
	"maps"

	"github.com/replicatedhq/ekco/internal/kotsadm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Machine is the name of the machine that the facts are for.
const Machine = "kotsadm"

// New returns the source. known is what the journal has, by name.
func New(api kotsadm.API, known map[string]journal.KotsadmFacts) observers.Source {
	draft := func(event journal.Type, facts journal.KotsadmFacts, payload journal.Payload) journal.Draft {
		subject := journal.KotsadmDatabase
		subject.UID = facts.UID
		return journal.Draft{Type: event, Actor: "observer/" + Machine, Subject: subject, Payload: payload}
	}
	return observers.PollOne(observers.PolledOne[journal.KotsadmFacts]{
		Name: journal.KotsadmDatabase.Kind + " " + journal.KotsadmDatabase.Name, Key: journal.KotsadmDatabase.Name, Get: api.Read,
		Noun: observers.Noun[journal.KotsadmFacts]{
			Observed: func(_ string, facts journal.KotsadmFacts) journal.Draft {
				encoded, err := json.Marshal(facts)
				if err != nil {
					panic(err) // no value of this type cannot be encoded
				}
				return draft(journal.TypeThingObserved, facts, journal.ThingObserved{Machine: Machine, Facts: encoded})
			},
			Gone: func(_ string, facts journal.KotsadmFacts, reason string) journal.Draft {
				return draft(journal.TypeThingGone, facts, journal.ThingGone{Machine: Machine, Reason: reason})
			},
			Equal: func(a, b journal.KotsadmFacts) bool { return a == b },
			UID:   func(facts journal.KotsadmFacts) string { return facts.UID },
			Known: maps.All(known),
		},
	})
}
