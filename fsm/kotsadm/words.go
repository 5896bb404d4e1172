package kotsadm

import (
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words are the words for the database, and for what is done to it.
var Words = words.Component{
	Name:        Machine,
	Actions:     []words.Action{{Kind: journal.ActionScaleKotsadm, Verb: "scale", Noun: "database of kotsadm"}},
	APIVersions: map[string]string{journal.KotsadmDatabase.Kind: "apps/v1"},
	Rows: []words.Row{
		{
			Type: journal.TypeThingTransitioned, About: journal.KotsadmDatabase.Kind,
			Sentence: words.Of(words.Transitioned),
			Log: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Line {
				return words.Info("kotsadm's database is "+string(p.To), "before", p.From, "reason", p.Reason)
			}),
			Kubernetes: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Note {
				return words.Note{Reason: "Kotsadm" + string(p.To), Message: p.Reason}
			}),
		},
		{Type: journal.TypeThingObserved, About: journal.KotsadmDatabase.Kind, Tone: words.Faint, Wakes: true, Sentence: words.Of(seen)},
		words.Gone(journal.KotsadmDatabase.Kind),
	},
}

func seen(e journal.Event, p *journal.ThingObserved) string {
	var facts journal.KotsadmFacts
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return ""
	}
	return fmt.Sprintf("%s is asked to have %s replicas", words.Object(e.Subject), facts.Size())
}
