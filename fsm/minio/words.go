package minio

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words are the words for MinIO, and for what is done to it.
var Words = words.Component{
	Name: Machine,
	Actions: []words.Action{
		{Kind: journal.ActionScaleMinio, Verb: "scale", Noun: "MinIO"},
		{Kind: journal.ActionRepairMinio, Verb: "repair", Noun: "MinIO"},
		{Kind: journal.ActionMoveMinio, Verb: "move a replica of", Noun: "MinIO"},
	},
	Rows: []words.Row{
		{
			Type: journal.TypeThingTransitioned, About: journal.MinioKind,
			Sentence: words.Of(func(e journal.Event, p *journal.ThingTransitioned) string {
				return fmt.Sprintf("%s: %s → %s%s", words.Object(e.Subject), p.From, p.To, words.Because(p.Reason))
			}),
			Log: words.Of(func(_ journal.Event, p *journal.ThingTransitioned) words.Line {
				return words.Info("MinIO is "+string(p.To), "before", p.From, "reason", p.Reason)
			}),
		},
		{Type: journal.TypeThingObserved, About: journal.MinioKind, Tone: words.Faint, Wakes: true, Sentence: words.Of(seen)},
		{Type: journal.TypeThingGone, About: journal.MinioKind, Sentence: words.Of(func(e journal.Event, p *journal.ThingGone) string {
			return words.Object(e.Subject) + " is gone" + words.Because(p.Reason)
		})},
	},
}

func seen(e journal.Event, p *journal.ThingObserved) string {
	var facts journal.MinioFacts
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return ""
	}
	return fmt.Sprintf("%s is asked to have %s and shall have %d; %s; %s", words.Object(e.Subject),
		words.Count(facts.Replicas, "replica"), facts.Desired, leads(facts.Service), places(facts.Pods))
}

// places says what the replicas do, by node.
func places(pods []journal.MinioPod) string {
	var nodes []string
	on := map[string][]string{}
	for _, pod := range pods {
		where := "no node"
		if pod.Node != "" {
			where = pod.Node
		}
		text := strings.TrimPrefix(pod.Name, "ha-minio-")
		if pod.State != journal.MinioPodRuns {
			text += " (" + string(pod.State) + ")"
		}
		if on[where] == nil {
			nodes = append(nodes, where)
		}
		on[where] = append(on[where], text)
	}
	if len(nodes) == 0 {
		return "there are no replicas"
	}
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = fmt.Sprintf("%s on %s", strings.Join(on[node], ", "), node)
	}
	return "replicas: " + strings.Join(texts, "; ")
}
