package bolt

import (
	"encoding/json"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// story is what the golden journal tells: a lost worker is cleared and purged
// with some trouble, and everything else that format 1 can say happens too.
func story() []journal.Draft {
	lost := time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)
	later := lost.Add(time.Hour)
	node := journal.NodeSubject("worker-1", "node-uid")
	other := journal.NodeSubject("worker-2", "other-uid")
	pod := journal.PodSubject("default", "web-0", "pod-uid", "worker-1")
	ref := journal.PodRef{Namespace: "default", Name: "web-0", UID: "pod-uid", DeletionTimestamp: lost}
	healthy := journal.NodeFacts{
		Role: journal.RoleWorker, InternalIP: "10.0.0.7", Hostname: "worker-1", CreatedAt: lost.Add(-24 * time.Hour),
	}
	unreachable := healthy
	unreachable.Taints = []journal.Taint{{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: lost}}
	clearPlan := journal.Plan{Steps: []journal.PlannedStep{{
		ID: "delete-pod default/web-0", Does: "delete-pod", Input: raw(`{"uid":"pod-uid"}`), Timeout: journal.Duration(30 * time.Second),
	}}}
	purgePlan := journal.Plan{Facts: raw(`{"node_uid":"node-uid"}`), Steps: []journal.PlannedStep{{
		ID: "delete-node", Does: "delete-node", Preflights: []string{"NodeStillGone"}, Irreversible: true,
		Timeout: journal.Duration(time.Minute),
	}}}
	skew, grace := journal.Duration(-1500*time.Millisecond), journal.Duration(30*time.Second)
	facts, operator := says{actor: "observer/node"}, says{actor: "operator"}
	clearing, purging := says{actor: "operator", action: "clear-1"}, says{actor: "operator", action: "purge-1"}
	unseen := journal.NodeSubject("worker-3", journal.TracedUID("worker-3"))
	traced := says{actor: "cli:root@primary", action: "purge-3"}
	person, asked := says{actor: "cli:root@primary"}, says{actor: "cli:root@primary", action: "purge-2"}
	return []journal.Draft{
		operator.of(journal.OperatorSubject, journal.TypeOperatorStarted, journal.OperatorStarted{
			Version: "v1.0.0", Host: "primary", PID: 1, ClusterUID: "cluster-uid", Settings: map[string]string{"clear_after": "5m"},
		}),
		facts.of(node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: healthy}),
		facts.of(other, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: healthy}),
		facts.of(node, journal.TypeNodeObserved, journal.NodeObserved{NodeFacts: unreachable}),
		operator.of(node, journal.TypeNodeTransitioned, journal.NodeTransitioned{
			From: "Healthy", To: "Unknown", Event: "lost", Reason: "the node does not answer", Since: lost,
		}),
		facts.of(pod, journal.TypePodTerminating, journal.PodTerminating{NodeUID: "node-uid", DeletionTimestamp: lost}),
		operator.of(journal.ClusterSubject, journal.TypeAPILost, journal.APILost{Error: "connection refused"}),
		operator.of(journal.ClusterSubject, journal.TypeAPIRecovered, journal.APIRecovered{LostAt: lost}),
		operator.of(node, journal.TypePolicyRefused, journal.PolicyRefused{
			Kind: journal.ActionClearNode, Rule: "Settling", Reason: "the API has just come back",
		}),
		operator.of(node, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionClearNode, Rule: "Settling"}),
		clearing.of(node, journal.TypeActionRequested, journal.ActionRequested{
			Kind: journal.ActionClearNode, Reason: "unreachable for 5m", Input: journal.ClearInput{Pods: []journal.PodRef{ref}},
		}),
		operator.of(node, journal.TypeNodeTransitioned, journal.NodeTransitioned{
			From: "Unknown", To: "Clearing", Event: "clear", Reason: "its pods are freed",
		}),
		clearing.of(node, journal.TypeActionPlanned, journal.ActionPlanned{Plan: clearPlan}),
		clearing.of(node, journal.TypeStepStarted, journal.StepStarted{Step: "delete-pod default/web-0", Attempt: 1}),
		clearing.of(node, journal.TypeStepDone, journal.StepDone{
			Step: "delete-pod default/web-0", Attempt: 1, Outputs: raw(`{"deleted":true}`),
		}),
		facts.of(pod, journal.TypePodGone, journal.PodGone{NodeUID: "node-uid"}),
		clearing.of(node, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}),
		operator.of(node, journal.TypeNodeTransitioned, journal.NodeTransitioned{
			From: "Clearing", To: "Cleared", Event: "cleared", Reason: "no pod is left",
		}),
		person.of(node, journal.TypePauseSet, journal.PauseSet{Reason: "maintenance", Until: later}),
		person.of(node, journal.TypePauseCleared, journal.PauseCleared{Reason: "done"}),
		person.of(other, journal.TypeActionRefused, journal.ActionRefused{
			Kind: journal.ActionPurgeNode, Rule: "ReadyMinimums", Reason: "<too few> workers & primaries",
		}),
		purging.of(node, journal.TypeActionRequested, journal.ActionRequested{
			Kind: journal.ActionPurgeNode, Reason: "asked for", Manual: true, Force: true,
		}),
		operator.of(node, journal.TypeNodeTransitioned, journal.NodeTransitioned{
			From: "Cleared", To: "Purging", Event: "purge", Reason: "a purge was asked for",
		}),
		purging.of(node, journal.TypeActionPlanned, journal.ActionPlanned{Plan: purgePlan}),
		purging.of(node, journal.TypeActionWarned, journal.ActionWarned{
			Preflight: "ReadyMinimums", Warning: "one worker is left", Answer: "--yes",
		}),
		purging.of(node, journal.TypeActionHeld, journal.ActionHeld{
			Preflight: "NodeStillGone", Step: "delete-node", Reason: "the API does not answer",
		}),
		purging.of(node, journal.TypeActionReleased, journal.ActionReleased{Preflight: "NodeStillGone", Step: "delete-node"}),
		purging.of(node, journal.TypeActionLeft, journal.ActionLeft{What: "osd.12", Reason: "the CRUSH map has it on host worker-3 now"}),
		purging.of(node, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 1}),
		purging.of(node, journal.TypeStepFailed, journal.StepFailed{
			Step: "delete-node", Attempt: 1, Error: "conflict", NextTry: later,
		}),
		purging.of(node, journal.TypeActionStalled, journal.ActionStalled{Step: "delete-node", Reason: "3 attempts failed"}),
		purging.of(node, journal.TypeActionRetried, journal.ActionRetried{Reason: "try again"}),
		purging.of(node, journal.TypeActionJoined, journal.ActionJoined{Reason: "it is in the way"}),
		purging.of(node, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 2}),
		purging.of(node, journal.TypeStepDone, journal.StepDone{Step: "delete-node", Attempt: 2, AlreadyDone: true}),
		facts.of(node, journal.TypeNodeGone, journal.NodeGone{Reason: "deleted"}),
		purging.of(node, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}),
		operator.of(node, journal.TypeNodeTransitioned, journal.NodeTransitioned{
			From: "Purging", To: "Purged", Event: "purged", Reason: "the purge is done",
		}),
		asked.of(other, journal.TypeActionAdopted, journal.ActionAdopted{JournalID: "elsewhere", Record: journal.ActionRecord{
			ID: "purge-2", Kind: journal.ActionPurgeNode, Subject: other, Status: "Requested", RequestedBy: "cli:root@primary",
			RequestedAt: lost, Request: journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "asked for", Manual: true},
		}}),
		asked.of(other, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "not now"}),
		asked.of(other, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeCancelled, Reason: "not now"}),
		traced.of(unseen, journal.TypeNodeTraced, journal.NodeTraced{
			Found: []string{"CRUSH host worker-3"}, Doubts: []string{"etcd could not be asked"},
		}),
		traced.of(unseen, journal.TypeActionRequested, journal.ActionRequested{
			Kind: journal.ActionPurgeNode, Reason: "asked for", Manual: true,
		}),
		traced.of(unseen, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeCancelled, Reason: "not now"}),
		operator.of(journal.JournalSubject, journal.TypeJournalExported, journal.JournalExported{
			File: "journal-2-9.ndjson.gz", FirstSeq: 2, LastSeq: 9, Events: 8, Kept: 8,
		}),
		operator.of(journal.JournalSubject, journal.TypeJournalImported, journal.JournalImported{
			File: "journal-2-9.ndjson.gz", FirstSeq: 2, LastSeq: 9, Events: 8,
		}),
		operator.of(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{
			DamagedFile: "journal.db.damaged-20260102T030405Z", Problem: "a flipped byte", Recovered: 40, LastSeq: 40, LostAtLeast: 1,
		}),
		operator.of(journal.JournalSubject, journal.TypeJournalOutdated, journal.JournalOutdated{
			LastSeq: 41, Mirrored: journal.Position{Seq: 44, Hash: journal.Hash{0x1f}}, MirroredAt: lost,
		}),
		operator.of(journal.JournalSubject, journal.TypeJournalReplaced, journal.JournalReplaced{
			File: "journal.db.of-cluster-c2-20260102T030405Z", Problem: "journal belongs to another cluster",
			JournalID: "j2", ClusterUID: "c2", LastSeq: 99, LastTime: lost,
		}),
		operator.of(journal.JournalSubject, journal.TypeJournalAccepted, journal.JournalAccepted{Reason: "looked at it"}),
		operator.of(journal.OperatorSubject, journal.TypeOperatorStopped, journal.OperatorStopped{Reason: "terminated"}),
		operator.of(journal.OperatorSubject, journal.TypeOperatorStarted, journal.OperatorStarted{
			Version: "v1.0.0", Host: "primary", PID: 2, BootID: "boot-id", Uptime: journal.Duration(26 * time.Hour), ClockSkew: &skew,
		}),
		operator.of(journal.OperatorSubject, journal.TypeClockJumped, journal.ClockJumped{By: journal.Duration(-3 * time.Hour)}),
		facts.of(pod, journal.TypePodTerminating, journal.PodTerminating{
			NodeUID: "node-uid", DeletionTimestamp: lost, GracePeriod: &grace,
		}),
	}
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// says is who tells a part of the story.
type says struct{ actor, action string }

func (s says) of(subject journal.Subject, of journal.Type, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: of, Subject: subject, Action: s.action, Actor: s.actor, Payload: payload}
}
