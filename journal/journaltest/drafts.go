package journaltest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/journal"
)

// Drafts generates valid drafts. They use only a few names of nodes, pods and actions, so that a query finds several
// events.
func Drafts() *rapid.Generator[journal.Draft] {
	return rapid.Custom(func(t *rapid.T) journal.Draft {
		node := fmt.Sprintf("node-%d", rapid.IntRange(0, 4).Draw(t, "node"))
		nodeUID := "uid-" + node
		pod := fmt.Sprintf("web-%d", rapid.IntRange(0, 9).Draw(t, "pod"))
		action := fmt.Sprintf("action-%d", rapid.IntRange(0, 3).Draw(t, "action"))
		text := rapid.String().Draw(t, "text")
		return rapid.SampledFrom([]journal.Draft{
			{
				Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(node, nodeUID), Actor: "observer/node",
				Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker, Hostname: text}},
			},
			{
				Type: journal.TypePodTerminating, Subject: journal.PodSubject("default", pod, "uid-"+pod, node), Actor: "observer/pod",
				Payload: journal.PodTerminating{NodeUID: nodeUID, DeletionTimestamp: time.Unix(1_700_000_000, 0).UTC()},
			},
			{
				Type: journal.TypeActionRequested, Subject: journal.NodeSubject(node, nodeUID), Action: action, Actor: "operator",
				Cause: 1, Payload: journal.ActionRequested{Kind: journal.ActionClearNode, Reason: text},
			},
			{
				Type: journal.TypeStepDone, Subject: journal.PodSubject("default", pod, "uid-"+pod, node), Action: action, Actor: "operator",
				Payload: journal.StepDone{Step: "delete-pod", Attempt: 1},
			},
			{
				Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Actor: "cli:root@host",
				Payload: journal.PauseSet{Reason: text},
			},
		}).Draw(t, "draft")
	})
}

func observed(node string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(node, "uid-"+node), Actor: "observer/node",
		Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}},
	}
}

func observedMany(count int) []journal.Draft {
	drafts := make([]journal.Draft, count)
	for i := range drafts {
		drafts[i] = observed(fmt.Sprintf("node-%d", i))
	}
	return drafts
}
