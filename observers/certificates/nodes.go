package certificates

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// ofNodes returns the known facts of one kind of certificate, by node.
func ofNodes(known map[string]journal.CertificateFacts, on func(journal.Subject) (node string, is bool)) map[string]journal.CertificateFacts {
	byNode := map[string]journal.CertificateFacts{}
	for name, facts := range known {
		if node, is := on(journal.Subject{Kind: journal.KindCertificate, Name: name}); is {
			byNode[node] = facts
		}
	}
	return byNode
}

// onNodes records one certificate for each node, with the given subject. gone returns the reason for a missing
// certificate.
func onNodes(
	subject func(node string) journal.Subject, known map[string]journal.CertificateFacts, gone func(reason string) string,
) observers.Noun[journal.CertificateFacts] {
	draft := func(event journal.Type, node string, payload journal.Payload) journal.Draft {
		return journal.Draft{Type: event, Actor: "observer/" + machine, Subject: subject(node), Payload: payload}
	}
	return observers.Noun[journal.CertificateFacts]{
		Observed: func(node string, now journal.CertificateFacts) journal.Draft {
			facts, err := json.Marshal(now)
			if err != nil {
				panic(err) // a value of this type can always be encoded
			}
			return draft(journal.TypeThingObserved, node, journal.ThingObserved{Machine: machine, Facts: facts})
		},
		Gone: func(node string, _ journal.CertificateFacts, reason string) journal.Draft {
			return draft(journal.TypeThingGone, node, journal.ThingGone{Machine: machine, Reason: gone(reason)})
		},
		Equal: func(a, b journal.CertificateFacts) bool { return reflect.DeepEqual(a, b) },
		UID: func(facts journal.CertificateFacts) string {
			if facts.On == nil {
				return ""
			}
			return facts.On.UID
		},
		Known: maps.All(known),
	}
}
