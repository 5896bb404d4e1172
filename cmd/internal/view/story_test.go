package view

import (
	"encoding/json"
	"testing"
	"time"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// vocabulary has the words of nodes, as the product has.
var vocabulary = words.New(fsmnode.Words)

var began = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

// story tells events one second after the other.
type story struct {
	t      *testing.T
	events []journal.Event
	// paused is the time that passed in addition.
	paused time.Duration
}

func (s *story) tell(subject journal.Subject, action, actor string, cause uint64, kind journal.Type, payload any) {
	s.t.Helper()
	body, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	n := len(s.events)
	s.events = append(s.events, journal.Event{
		Seq: uint64(n + 1), Time: began.Add(time.Duration(n)*time.Second + s.paused), Type: kind, Version: 1,
		Subject: subject, Action: action, Cause: cause, Actor: actor, Payload: body,
	})
}

// wholeStory has an event of every type.
func wholeStory(t *testing.T) []journal.Event {
	t.Helper()
	s := &story{t: t}
	node := journal.NodeSubject("worker-2", "uid-w2")
	pod := journal.PodSubject("default", "web-0", "uid-p", "worker-2")
	const admin, clear, purge = "cli:root@primary-0", "clear-worker-2-9", "purge-worker-2-18"
	lost := journal.NodeFacts{Role: journal.RoleWorker, Taints: []journal.Taint{
		{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: began.Add(-time.Minute)},
		{Key: journal.TaintUnreachable, Effect: "NoSchedule"},
		{Key: journal.TaintUnschedulable, Effect: "NoSchedule"},
	}}
	s.tell(journal.JournalSubject, "", "operator", 0, journal.TypeJournalCreated, journal.JournalCreated{Format: 1, JournalID: "j1"})
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeOperatorStarted, journal.OperatorStarted{Version: "v0.29.0", Host: "primary-0", PID: 7})
	s.tell(node, "", "observer/node", 0, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}})
	s.tell(node, "", "observer/node", 0, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: lost})
	s.tell(node, "", "operator", 4, journal.TypeNodeTransitioned, journal.NodeTransitioned{From: fsmnode.Healthy, To: fsmnode.Unknown, Event: "lost", Reason: "unreachable since 2026-11-21T00:59:00Z"})
	s.tell(pod, "", "observer/pod", 0, journal.TypePodTerminating, journal.PodTerminating{NodeUID: "uid-w2", DeletionTimestamp: began.Add(30 * time.Second)})
	s.tell(node, "", "operator", 4, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionClearNode, Rule: "StormBrake", Reason: "4 of 6 nodes are unknown"})
	s.tell(node, "", "operator", 4, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionClearNode, Rule: "StormBrake"})
	s.tell(node, clear, "operator", 5, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionClearNode, Reason: "the node has been unreachable for 5m", Input: journal.ClearInput{Pods: []journal.PodRef{{Name: "web-0"}}}})
	s.tell(node, clear, "operator", 9, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "delete-pod default/web-0"}}}})
	s.tell(node, clear, "operator", 10, journal.TypeStepStarted, journal.StepStarted{Step: "delete-pod default/web-0", Attempt: 1})
	s.tell(node, clear, "operator", 11, journal.TypeStepDone, journal.StepDone{Step: "delete-pod default/web-0", Attempt: 1, AlreadyDone: true})
	s.tell(pod, "", "observer/pod", 0, journal.TypePodGone, journal.PodGone{NodeUID: "uid-w2"})
	s.tell(node, clear, "operator", 12, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})
	s.tell(journal.ClusterSubject, "", admin, 0, journal.TypePauseSet, journal.PauseSet{Reason: "maintenance", Until: began.Add(time.Hour)})
	s.tell(journal.ClusterSubject, "", admin, 0, journal.TypePauseCleared, journal.PauseCleared{})
	s.tell(node, "", admin, 0, journal.TypeActionRefused, journal.ActionRefused{Kind: journal.ActionPurgeNode, Rule: "ReadyMinimums", Reason: "the node is ready"})
	s.tell(node, purge, admin, 5, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "asked for by " + admin, Manual: true, Force: true, Input: journal.PurgeInput{Live: true}})
	s.tell(node, purge, "operator", 18, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{
		{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "delete-node"},
	}}})
	s.tell(node, purge, admin, 18, journal.TypeActionWarned, journal.ActionWarned{Preflight: "Excluded", Warning: "the node has the label", Answer: "--yes"})
	s.tell(node, purge, "operator", 18, journal.TypeActionHeld, journal.ActionHeld{Preflight: "OneAtATime", Step: "delete-node", Reason: "purge-x runs"})
	s.tell(node, purge, "operator", 18, journal.TypeActionReleased, journal.ActionReleased{Preflight: "OneAtATime", Step: "delete-node"})
	s.tell(node, purge, "operator", 18, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 1})
	s.tell(node, purge, "operator", 18, journal.TypeStepFailed, journal.StepFailed{Step: "delete-node", Attempt: 1, Error: "the \x1b[31mAPI\nis away", NextTry: began.Add(25 * time.Second)})
	s.tell(node, purge, "operator", 18, journal.TypeActionStalled, journal.ActionStalled{Step: "delete-node", Reason: "5 attempts failed"})
	s.tell(node, purge, admin, 18, journal.TypeActionRetried, journal.ActionRetried{Reason: "the API is back"})
	s.tell(node, purge, "cli:ben@h2", 18, journal.TypeActionJoined, journal.ActionJoined{Reason: "its rack is wanted"})
	s.tell(node, purge, admin, 18, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "never mind"})
	s.tell(node, purge, "operator", 18, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 2})
	s.tell(node, purge, "operator", 18, journal.TypeStepDone, journal.StepDone{Step: "delete-node", Attempt: 2})
	s.tell(node, "purge-other", "operator", 0, journal.TypeActionAdopted, journal.ActionAdopted{JournalID: "j0", Record: journal.ActionRecord{
		Kind: journal.ActionPurgeNode, Subject: node, RequestedBy: admin, RequestedAt: began.Add(-time.Hour),
	}})
	unseen := journal.NodeSubject("worker-9", journal.TracedUID("worker-9"))
	s.tell(unseen, "purge-worker-9-33", admin, 0, journal.TypeNodeTraced, journal.NodeTraced{
		Found: []string{"an entry in the CephCluster", "etcd member worker-9"}, Doubts: []string{"Ceph could not be asked: no mgr"},
	})
	s.tell(unseen, "purge-worker-9-33", admin, 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "asked for by " + admin, Manual: true})
	s.tell(node, "", "observer/node", 0, journal.TypeNodeGone, journal.NodeGone{Reason: "deleted"})
	s.tell(node, purge, "operator", 18, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeAPILost, journal.APILost{Error: "connection refused"})
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeAPIRecovered, journal.APIRecovered{LostAt: began.Add(31 * time.Second)})
	s.tell(journal.JournalSubject, "", "operator", 0, journal.TypeJournalExported, journal.JournalExported{File: "e.gz", FirstSeq: 1, LastSeq: 9, Events: 8, Kept: 1})
	s.tell(journal.JournalSubject, "", "journal", 0, journal.TypeJournalPruned, journal.JournalPruned{File: "/d/journal-1-9.ndjson.gz", Bytes: 812, Written: began.Add(-time.Hour)})
	s.tell(journal.JournalSubject, "", admin, 0, journal.TypeJournalImported, journal.JournalImported{File: "e.gz", FirstSeq: 1, LastSeq: 9, Events: 8})
	s.tell(journal.JournalSubject, "", "operator", 0, journal.TypeJournalOutdated, journal.JournalOutdated{
		LastSeq: 80, Mirrored: journal.Position{Seq: 120}, MirroredAt: began.Add(-time.Hour),
	})
	s.tell(journal.JournalSubject, "", "operator", 0, journal.TypeJournalOutdated, journal.JournalOutdated{Mirrored: journal.Position{Seq: 120}})
	s.tell(journal.JournalSubject, "", "journal", 0, journal.TypeJournalReplaced, journal.JournalReplaced{
		File: "/d/journal.db.of-cluster-c2-x", Problem: "it is of cluster c2", JournalID: "j2", ClusterUID: "c2", LastSeq: 99,
	})
	s.tell(journal.JournalSubject, "", "operator", 0, journal.TypeJournalSalvaged, journal.JournalSalvaged{DamagedFile: "d", Problem: "page 7", Recovered: 12, LastSeq: 12, LostAtLeast: 3})
	s.tell(journal.JournalSubject, "", admin, 0, journal.TypeJournalAccepted, journal.JournalAccepted{Reason: "looked at"})
	s.tell(journal.JournalSubject, "", "operator", 0, journal.TypeJournalAdopted, journal.JournalAdopted{
		JournalID: "j3", MirroredAt: began.Add(-time.Hour), Actions: 1, Pauses: 2,
	})
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeOperatorStopped, journal.OperatorStopped{Reason: "terminated"})
	s.tell(unseen, "purge-worker-9-33", "operator", 0, journal.TypeActionLeft, journal.ActionLeft{What: "osd.12", Reason: "the CRUSH map has it on host worker-7 now"})
	behind := journal.Duration(3 * time.Hour)
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeOperatorStarted, journal.OperatorStarted{Version: "v0.29.0", Host: "primary-0", PID: 8, ClockSkew: &behind})
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeClockJumped, journal.ClockJumped{By: behind})
	s.tell(journal.OperatorSubject, "", "operator", 0, journal.TypeClockJumped, journal.ClockJumped{By: journal.Duration(-time.Minute)})
	lamp := journal.Subject{Kind: "Lamp", Name: "hall", UID: "lamp-1"}
	s.tell(lamp, "", "observer/lamp", 0, journal.TypeThingObserved, journal.ThingObserved{Machine: "lamp", Facts: []byte(`{"lit":false}`)})
	s.tell(lamp, "", "operator", 0, journal.TypeThingTransitioned, journal.ThingTransitioned{Machine: "lamp", From: "Burning", To: "Dark", Event: "went out", Reason: "it does not burn"})
	s.tell(lamp, "", "observer/lamp", 0, journal.TypeThingGone, journal.ThingGone{Machine: "lamp", Reason: "deleted"})
	s.tell(unseen, "purge-worker-9-33", "operator", 0, journal.TypeStepNoted, journal.StepNoted{Step: "remove-member", Attempt: 1, Outputs: []byte(`{"at":7}`)})
	return s.events
}
