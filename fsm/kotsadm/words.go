package kotsadm

import (
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for the database and the action that changes it.
var Words = words.Component{
	Name:        Machine,
	Actions:     []words.Action{{Kind: journal.ActionScaleKotsadm, Verb: "scale", Noun: "database of kotsadm"}},
	APIVersions: map[string]string{journal.KotsadmDatabase.Kind: "apps/v1"},
	Rows: []words.Row{
		words.Noted(journal.KotsadmDatabase.Kind, "kotsadm's database", "Kotsadm"),
		words.Observed(journal.KotsadmDatabase.Kind, func(facts journal.KotsadmFacts) string {
			return "specifies " + facts.Size() + " replicas"
		}),
		words.Gone(journal.KotsadmDatabase.Kind),
	},
}
