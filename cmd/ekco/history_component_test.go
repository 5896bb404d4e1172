package main

import (
	"encoding/json"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestHistoryOfNodesIsAlsoOfWhatIsDoneToThem(t *testing.T) {
	op := &fakeOperator{}
	d := newDesk(t, op)
	add := func(kind, action string, payload journal.Payload) {
		e := event(t, uint64(len(op.past)+1), action, journal.TypeOf(payload), payload)
		e.Subject = journal.Subject{Kind: kind, Name: "w1", UID: "uid-" + kind}
		op.past = append(op.past, e)
	}
	add("Node", "", &journal.NodeGone{Reason: "deleted"})
	add("Node", "clear-w1-2", &journal.ActionRequested{Kind: journal.ActionClearNode})
	add("Node", "clear-w1-2", &journal.StepStarted{Step: "delete-pod default/web-0"})
	add("Node", "purge-w1-4", &journal.ActionRequested{Kind: journal.ActionPurgeNode})
	add("Node", "purge-w1-4", &journal.ActionEnded{Outcome: journal.OutcomeDone})
	add("Cluster", "", &journal.PolicyRefused{Kind: journal.ActionPurgeNode, Rule: "StormBrake"})
	add("Node", "", &journal.ActionRefused{Kind: journal.ActionPurgeNode, Rule: "SafeMode"})
	add("Pod", "", &journal.PodGone{NodeUID: "uid-Node"})
	add("Envoy", "", &journal.ThingObserved{Machine: "envoy", Facts: json.RawMessage(`{}`)})
	add("Envoy", "restart-envoy-w1-9", &journal.ActionRequested{Kind: journal.ActionRestartEnvoy})
	add("Envoy", "restart-envoy-w1-9", &journal.ActionEnded{Outcome: journal.OutcomeDone})
	add("Cluster", "", &journal.PolicyRefused{Kind: journal.ActionRestartEnvoy, Rule: "Settling"})
	d.lists("--component node", 1, 2, 3, 4, 5, 6, 7, 8)
	d.lists("--component node --type action.*", 2, 4, 5, 7)
	d.lists("--component node --type step.*", 3)
	d.lists("--component envoy", 9, 10, 11, 12)
	d.lists("--component node,envoy", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
}
