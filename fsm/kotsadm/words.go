package kotsadm

import (
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words are the words for the database, and for what is done to it.
var Words = words.Component{
	Name:        Machine,
	Actions:     []words.Action{{Kind: journal.ActionScaleKotsadm, Verb: "scale", Noun: "database of kotsadm"}},
	APIVersions: map[string]string{journal.KotsadmDatabase.Kind: "apps/v1"},
	Rows: []words.Row{
		words.Noted(journal.KotsadmDatabase.Kind, "kotsadm's database", "Kotsadm"),
		words.Observed(journal.KotsadmDatabase.Kind, func(facts journal.KotsadmFacts) string {
			return "is asked to have " + facts.Size() + " replicas"
		}),
		words.Gone(journal.KotsadmDatabase.Kind),
	},
}
