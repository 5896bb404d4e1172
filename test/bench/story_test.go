package bench

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// storyNodes is how many nodes the events of a story are spread over.
const storyNodes = 1000

// story writes a long history: nodes are seen, lost, cleared of two pods each
// and return, over and over, one event every few seconds.
type story struct {
	now   time.Time
	pace  time.Duration
	state *fsm.State
	// round counts how often all nodes were lost.
	round int
}

// writeStory makes a journal of that many events, which lead up to now, with a
// snapshot near the end as an operator leaves it.
func writeStory(b *testing.B, path string, events int) {
	b.Helper()
	const span = 60 * 24 * time.Hour // within the default retention
	s := &story{now: time.Now().Add(-span), pace: span / time.Duration(events), state: fsm.NewState(fsmnode.Capability())}
	store, err := bolt.Open(b.Context(), path, bolt.Options{Now: func() time.Time { return s.now }})
	if err != nil {
		b.Fatal(err)
	}
	var pending []journal.Draft
	for node := 0; int(s.state.Seq)+len(pending) < events; node++ {
		s.round = node / storyNodes
		pending = append(pending, s.episode(node%storyNodes)...)
		if len(pending) >= 200 || int(s.state.Seq)+len(pending) >= events {
			s.append(b, store, pending)
			pending = pending[:0]
		}
	}
	if problems := s.state.Problems; len(problems) > 0 {
		b.Fatalf("the story makes no sense: %v", problems[0])
	}
	snapshot, err := s.state.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	if err := store.SaveSnapshot(b.Context(), snapshot); err != nil {
		b.Fatal(err)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// append writes the drafts, and lets the time pass that they took to happen.
func (s *story) append(b *testing.B, store *bolt.Store, drafts []journal.Draft) {
	b.Helper()
	s.now = s.now.Add(s.pace * time.Duration(len(drafts)))
	events, err := store.Append(b.Context(), drafts...)
	if err != nil {
		b.Fatal(err)
	}
	for _, event := range events {
		s.state.Apply(event)
	}
}

func storyNode(number int) string { return fmt.Sprintf("node-%04d", number) }

// episode is how one node is lost, cleared and returns.
func (s *story) episode(number int) []journal.Draft {
	name := storyNode(number)
	node := journal.NodeSubject(name, fmt.Sprintf("00000000-0000-4000-8000-%012d", number))
	action := fmt.Sprintf("%d-%d-clear", s.round, number)
	facts := journal.NodeFacts{
		Role: journal.RoleWorker, InternalIP: fmt.Sprintf("10.0.%d.%d", number/250, number%250), Hostname: name,
		CreatedAt: s.now.Add(-24 * time.Hour).Truncate(time.Second).UTC(),
	}
	lost := facts
	lost.Taints = []journal.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute", TimeAdded: s.now.Truncate(time.Second).UTC()}}
	var drafts []journal.Draft
	say := func(actor, action string, subject journal.Subject, kind journal.Type, payload journal.Payload) {
		drafts = append(drafts, journal.Draft{Type: kind, Subject: subject, Action: action, Actor: actor, Payload: payload})
	}
	if s.round == 0 {
		say("observer/node", "", node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: facts})
	}
	say("observer/node", "", node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: lost})
	say("operator", "", node, journal.TypeNodeTransitioned, journal.NodeTransitioned{From: fsmnode.Healthy, To: fsmnode.Unknown, Event: "lost", Reason: "the node is unreachable", Since: s.now.UTC()})
	pods := s.pods(number)
	for _, pod := range pods {
		say("observer/pod", "", podOn(pod, name), journal.TypePodTerminating, journal.PodTerminating{NodeUID: node.UID, DeletionTimestamp: pod.DeletionTimestamp})
	}
	say("operator", action, node, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionClearNode, Reason: "2 pods hang in termination", Input: journal.ClearInput{Pods: pods}})
	say("operator", "", node, journal.TypeNodeTransitioned, journal.NodeTransitioned{From: fsmnode.Unknown, To: fsmnode.Clearing, Event: "clear", Reason: "a clear-node action is open"})
	say("operator", action, node, journal.TypeActionPlanned, journal.ActionPlanned{Plan: planOf(pods)})
	for _, pod := range pods {
		step := "delete-pod " + pod.Namespace + "/" + pod.Name
		say("operator", action, podOn(pod, name), journal.TypeStepStarted, journal.StepStarted{Step: step, Attempt: 1})
		say("operator", action, podOn(pod, name), journal.TypeStepDone, journal.StepDone{Step: step, Attempt: 1})
		say("observer/pod", "", podOn(pod, name), journal.TypePodGone, journal.PodGone{NodeUID: node.UID})
	}
	say("operator", action, node, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})
	say("operator", "", node, journal.TypeNodeTransitioned, journal.NodeTransitioned{From: fsmnode.Clearing, To: fsmnode.Cleared, Event: "cleared"})
	say("observer/node", "", node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: facts})
	say("operator", "", node, journal.TypeNodeTransitioned, journal.NodeTransitioned{From: fsmnode.Cleared, To: fsmnode.Healthy, Event: "returned", Reason: "the node answers again"})
	return drafts
}

func (s *story) pods(number int) []journal.PodRef {
	pods := make([]journal.PodRef, 2)
	for i := range pods {
		pods[i] = journal.PodRef{
			Namespace: "default", Name: fmt.Sprintf("web-%d-%d-%d", number, s.round, i),
			UID:               fmt.Sprintf("00000000-0000-4000-9%03d-%08d%04d", i, s.round, number),
			DeletionTimestamp: s.now.Truncate(time.Second).UTC(),
		}
	}
	return pods
}

func podOn(pod journal.PodRef, node string) journal.Subject {
	return journal.PodSubject(pod.Namespace, pod.Name, pod.UID, node)
}

func planOf(pods []journal.PodRef) journal.Plan {
	plan := journal.Plan{}
	for _, pod := range pods {
		input, err := json.Marshal(pod)
		if err != nil {
			panic(err) // a PodRef is always valid JSON
		}
		plan.Steps = append(plan.Steps, journal.PlannedStep{
			ID: "delete-pod " + pod.Namespace + "/" + pod.Name, Does: "delete-pod", Input: input,
			Preflights: []string{"NodeStillGone"}, Timeout: journal.Duration(30 * time.Second),
		})
	}
	return plan
}
