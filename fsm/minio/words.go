package minio

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for MinIO and its actions.
var Words = words.Component{
	Name: Machine,
	Actions: []words.Action{
		{Kind: journal.ActionScaleMinio, Verb: "scale", Noun: "MinIO"},
		{Kind: journal.ActionRepairMinio, Verb: "repair", Noun: "MinIO"},
		{Kind: journal.ActionMigrateMinio, Verb: "migrate", Noun: "MinIO"},
		{Kind: journal.ActionMoveMinio, Verb: "move a replica of", Noun: "MinIO"},
	},
	Rows: []words.Row{
		words.Transition(journal.MinioKind, words.IsNow("MinIO")),
		{Type: journal.TypeThingObserved, About: journal.MinioKind, Tone: words.Faint, Wakes: true, Sentence: words.Of(factsSentence)},
		words.Gone(journal.MinioKind),
	},
}

func factsSentence(e journal.Event, p *journal.ThingObserved) string {
	var facts journal.MinioFacts
	if err := json.Unmarshal(p.Facts, &facts); err != nil {
		return ""
	}
	text := fmt.Sprintf("%s specifies %s and should have %d; %s; %s", words.Object(e.Subject),
		words.Count(facts.Replicas, "replica"), facts.Desired, selectsText(facts.Service), placesText(facts.Pods))
	if facts.Health != "" {
		text += "; it is " + string(facts.Health)
	}
	return text
}

func (machine) Details(t *fsm.Thing, _ *fsm.World) []string {
	m := of(t)
	lines := []string{
		fmt.Sprintf("%s; %d of %s run, and it should have %d", selectsText(m.Service), m.countRunning(), words.Count(m.Replicas, "replica"), m.Desired),
	}
	if m.Deployment != "" {
		lines = append(lines, "standalone MinIO (Deployment minio) exists")
	}
	if m.Health != "" {
		lines = append(lines, "ha-minio is "+string(m.Health))
	}
	for _, place := range groupByNode(m.Pods) {
		lines = append(lines, place.node+": "+strings.Join(place.replicas, ", "))
	}
	return lines
}

func (m *MinIO) countRunning() (n int) {
	for _, pod := range m.Pods {
		if pod.State == journal.MinioPodRuns {
			n++
		}
	}
	return n
}

// placesText returns a text that lists the replicas of each node with their states.
func placesText(pods []journal.MinioPod) string {
	if len(pods) == 0 {
		return "there are no replicas"
	}
	var texts []string
	for _, place := range groupByNode(pods) {
		texts = append(texts, fmt.Sprintf("%s on %s", strings.Join(place.replicas, ", "), place.node))
	}
	return "replicas: " + strings.Join(texts, "; ")
}

// place is a node with its replicas. A replica is its ordinal number, with its state if it does not run.
type place struct {
	node     string
	replicas []string
}

// groupByNode groups the replicas by node, in the order of the first replica of each node.
func groupByNode(pods []journal.MinioPod) (places []place) {
	for _, pod := range pods {
		text := strings.TrimPrefix(pod.Name, "ha-minio-")
		if pod.State != journal.MinioPodRuns {
			text += " (" + string(pod.State) + ")"
		}
		node := cmp.Or(pod.Node, "no node")
		at := slices.IndexFunc(places, func(p place) bool { return p.node == node })
		if at < 0 {
			at, places = len(places), append(places, place{node: node})
		}
		places[at].replicas = append(places[at].replicas, text)
	}
	return places
}
