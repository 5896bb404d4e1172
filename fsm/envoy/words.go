package envoy

import (
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for Envoy and the actions about its pods.
var Words = words.Component{
	Name:    Machine,
	Actions: []words.Action{{Kind: journal.ActionRestartEnvoy, Verb: "restart", Noun: "envoy"}},
	Rows: []words.Row{
		{Type: journal.TypeThingObserved, About: Kind, Tone: words.Faint, Wakes: true, Sentence: words.Of(factsSentence)},
		{Type: journal.TypeThingGone, About: Kind, Tone: words.Faint, Wakes: true, Sentence: words.Of(func(e journal.Event, p *journal.ThingGone) string {
			return fmt.Sprintf("the pod of %s is no longer unready%s", words.Object(e.Subject), words.Because(p.Reason))
		})},
		words.Transition(Kind, words.IsNow("Envoy")),
	},
}

func factsSentence(e journal.Event, p *journal.ThingObserved) string {
	var pod journal.EnvoyPod
	if err := json.Unmarshal(p.Facts, &pod); err != nil {
		return ""
	}
	return fmt.Sprintf("the pod of %s, %s, runs but has not been ready since %s by its node's clock", words.Object(e.Subject), pod, words.Stamp(pod.Since))
}
