package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// due is a world in which the named workers are lost for long enough to be
// purged; p1 to p3 and ten more workers are fine.
func due(t *testing.T, names ...string) *world {
	w := newWorld(t)
	w.cluster()
	for i := range 10 {
		w.observe(fmt.Sprintf("x%d", i))
	}
	for _, name := range names {
		w.lose(name)
		w.pass(time.Second)
	}
	w.decide()
	w.pass(w.p.PurgeAfter)
	return w
}

func TestADeadNodeIsPurgedExactlyWhenItsTimeIsOver(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3", "w4")
	w.lose("w1")
	dueAt := w.now.Add(w.p.PurgeAfter)
	if d := w.decide(); !d.Next.Equal(dueAt) {
		t.Fatalf("next: got %s, want %s", d.Next, dueAt)
	}
	w.now = dueAt.Add(-1)
	w.wantDecided()
	w.now = dueAt
	w.wantDecided("action.requested w1: purge-node", "node.transitioned w1: Unknown to Purging")
}

func TestAutomaticPurgeIsOffUnlessSwitchedOn(t *testing.T) {
	w := due(t, "w1")
	w.p = policies{fsm.DefaultPolicy(), DefaultPolicy()}
	w.wantDecided()
}

func TestAPurgeEndsInPurgedAlsoWhenItsNodeIsSeenToGo(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "look")
	w.startStep(id, "delete-node")
	w.gone("w1", "deleted")
	w.wantDecided()
	w.wantState("w1", Purging)
	w.end(id, journal.OutcomeDone)
	w.wantDecided("node.transitioned w1: Purging to Purged")
	if !w.s.EndedAt[journal.ActionPurgeNode].Equal(w.now) {
		t.Error("the cooldown does not start")
	}
}

func TestANodeWhosePurgeIsDoneNoLongerCountsThoughItIsStillSeen(t *testing.T) {
	w := due(t, "w1", "p9")
	w.lose("p9", primary)
	w.decide()
	w.observe("w1", primary) // as if the last list were late
	w.p.MinReadyPrimaries = 4
	w.pass(2 * time.Hour)
	id := w.mustAdmit(ask("w1")).Action
	w.end(id, journal.OutcomeDone)
	w.wantDecided("node.transitioned w1: Purging to Purged", "policy.refused p9: purge-node by ReadyMinimums")
}

func TestQ26OnlyOneNodeIsPurgedAtATimeTheLongestLostFirst(t *testing.T) {
	w := due(t, "w2", "w1", "w3")
	w.wantDecided("action.requested w2: purge-node", "node.transitioned w2: Unknown to Purging", "policy.refused Cluster: purge-node by OneAtATime")
	w.end(w.open(journal.ActionPurgeNode, "w2"), journal.OutcomeDone)
	d := w.wantDecided("node.transitioned w2: Purging to Purged", "policy.refused Cluster: purge-node by Cooldown")
	if want := w.now.Add(w.p.Cooldown); !d.Next.Equal(want) {
		t.Fatalf("next: got %s, want the end of the cooldown %s", d.Next, want)
	}
	w.pass(w.p.Cooldown)
	w.wantDecided("action.requested w1: purge-node", "node.transitioned w1: Unknown to Purging", "policy.refused Cluster: purge-node by OneAtATime")
}

func TestQ6AutomaticPurgeAsksOnlyForTheMinimumOfTheNodesOwnRole(t *testing.T) {
	for name, test := range map[string]struct {
		minPrimaries, minWorkers int
		lost                     factsOption
		refused                  bool
	}{
		"a primary though workers are too few":    {2, 50, primary, false},
		"a worker though primaries are too few":   {50, 0, cordoned, false},
		"a primary when primaries are too few":    {3, 0, primary, true},
		"a worker when workers are too few":       {0, 4, cordoned, true},
		"a primary with exactly the minimum left": {2, 0, primary, false},
		"a worker with exactly the minimum left":  {0, 3, cordoned, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.p.MinReadyPrimaries, w.p.MinReadyWorkers = test.minPrimaries, test.minWorkers
			w.observe("p1", primary)
			w.observe("p2", primary)
			for _, worker := range []string{"w1", "w2", "w3"} {
				w.observe(worker)
			}
			w.lose("lost", test.lost)
			w.pass(2 * time.Hour)
			want := []string{"node.transitioned lost: Healthy to Unknown", "action.requested lost: purge-node", "node.transitioned lost: Unknown to Purging"}
			if test.refused {
				want = []string{"node.transitioned lost: Healthy to Unknown", "policy.refused lost: purge-node by ReadyMinimums"}
			}
			w.wantDecided(want...)
		})
	}
}

func TestACordonedNodeDoesNotCountTowardsTheMinimum(t *testing.T) {
	w := due(t, "p9")
	w.lose("p9", primary)
	w.observe("p3", primary, cordoned)
	w.observe("p2", primary, cordoned)
	w.pass(2 * time.Hour)
	w.wantDecided("policy.refused p9: purge-node by ReadyMinimums")
	w.observe("p3", primary)
	w.wantDecided("action.requested p9: purge-node", "node.transitioned p9: Unknown to Purging", "policy.lifted p9: purge-node by ReadyMinimums")
}

func TestQ39D16ARefusedPurgeDoesNotKeepPodsFromBeingCleared(t *testing.T) {
	w := due(t, "p9")
	w.lose("p9", primary)
	w.p.MinReadyPrimaries = 4
	w.terminating("p9", "a")
	w.pass(2 * time.Hour)
	w.wantDecided("action.requested p9: clear-node a", "node.transitioned p9: Unknown to Clearing", "policy.refused p9: purge-node by ReadyMinimums")
}

func TestQ39D16AnOpenOrStalledPurgeDoesNotKeepPodsFromBeingCleared(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.terminating("w1", "a")
	w.pass(time.Minute)
	w.wantDecided("action.requested w1: clear-node a")
	w.act(id, journal.TypeActionStalled, journal.ActionStalled{Reason: "spent"})
	w.terminating("w1", "b")
	w.pass(time.Minute)
	w.wantDecided("action.requested w1: clear-node b")
	w.wantState("w1", Purging)
}

func TestD7AfterAnOutageNothingDestructiveStartsBeforeEKCOHasSettled(t *testing.T) {
	w := due(t, "w1")
	w.terminating("w1", "a")
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{Error: "refused"})
	lost := w.now
	w.pass(time.Minute)
	w.wantDecided("policy.refused Cluster: clear-node by APIUnreachable", "policy.refused Cluster: purge-node by APIUnreachable")
	w.pass(3 * time.Hour)
	w.tell(journal.TypeAPIRecovered, journal.ClusterSubject, journal.APIRecovered{LostAt: lost})
	d := w.wantDecided("policy.refused Cluster: clear-node by Settling", "policy.refused Cluster: purge-node by Settling")
	if want := w.now.Add(w.p.Settling); !d.Next.Equal(want) {
		t.Fatalf("next: got %s, want the end of settling %s", d.Next, want)
	}
	w.now = w.now.Add(w.p.Settling - 1)
	w.wantDecided()
	w.pass(1)
	w.wantDecided("action.requested w1: clear-node a", "node.transitioned w1: Unknown to Clearing",
		"action.requested w1: purge-node", "node.transitioned w1: Clearing to Purging",
		"policy.lifted Cluster: clear-node by Settling", "policy.lifted Cluster: purge-node by Settling")
}

func TestD7AfterAStartNothingDestructiveStartsBeforeEKCOHasSettled(t *testing.T) {
	w := due(t, "w1")
	w.tell(journal.TypeOperatorStopped, journal.OperatorSubject, journal.OperatorStopped{Reason: "SIGTERM"})
	w.pass(time.Hour)
	w.wantDecided("policy.refused Cluster: purge-node by Settling")
	w.start()
	w.wantDecided()
	w.observe("w1")
	w.pass(time.Hour)
	w.wantDecided("node.transitioned w1: Unknown to Healthy", "policy.lifted Cluster: purge-node by Settling")
}

func TestANodeThatCameBackIsNotPurged(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "look")
	w.observe("w1")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Purging to Healthy")
	w.end(id, journal.OutcomeAbandoned)
	w.wantDecided()
}

func TestAPurgePastItsPointOfNoReturnGoesOnWhenTheNodeComesBack(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "delete-node")
	w.observe("w1")
	w.wantDecided()
	w.wantState("w1", Purging)
}

func TestAnAutomaticPurgeIsAbandonedWhenSomebodyElseDeletesTheNode(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	w.gone("w1", "deleted")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Purging to Gone")
}

func TestADryRunPurgeIsNotRepeatedUntilTheNodeWasHealthy(t *testing.T) {
	w := due(t, "w1")
	w.p.DryRun = true
	w.decide()
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeDryRun)
	w.wantDecided("node.transitioned w1: Purging to Unknown", "policy.refused w1: purge-node by TriedBefore")
	w.pass(24 * time.Hour)
	w.wantDecided()
	w.observe("w1")
	w.wantDecided("node.transitioned w1: Unknown to Healthy", "policy.lifted w1: purge-node by TriedBefore")
	w.lose("w1")
	w.pass(w.p.PurgeAfter)
	w.wantDecided("node.transitioned w1: Healthy to Unknown", "action.requested w1: purge-node", "node.transitioned w1: Unknown to Purging")
}

func TestACancelledPurgeIsNotRepeatedByEKCOItself(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeCancelled)
	w.pass(24 * time.Hour)
	w.wantDecided("node.transitioned w1: Purging to Unknown", "policy.refused w1: purge-node by TriedBefore")
}

func TestCooldownStartsOnlyWithAPurgeThatDidSomething(t *testing.T) {
	w := due(t, "w1", "w2")
	w.decide()
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeCancelled)
	w.wantDecided("node.transitioned w1: Purging to Unknown", "action.requested w2: purge-node", "node.transitioned w2: Unknown to Purging",
		"policy.lifted Cluster: purge-node by OneAtATime", "policy.refused w1: purge-node by TriedBefore")
}

func TestAnAdoptedPurgeIsFinishedThoughItsNodeWasNeverSeen(t *testing.T) {
	w := newWorld(t)
	w.cluster("w2")
	rec := journal.ActionRecord{
		ID: "purge-w1-5", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", uidOf("w1")), RequestedAt: w.now,
		Request: journal.ActionRequested{Kind: journal.ActionPurgeNode}, Planned: true, PastNoReturn: true, Status: "nonsense",
		Steps: map[string]journal.StepRecord{"delete-node": {Attempts: 1, Open: true}},
	}
	w.write(journal.Draft{Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator, Payload: journal.ActionAdopted{Record: rec}})
	if got := w.s.Actions[rec.ID].Status; got != fsm.Running {
		t.Errorf("status: got %s, want it derived: Running", got)
	}
	w.wantDecided("node.transitioned w1: Unknown to Purging")
	w.gone("w1", "absent at start")
	w.wantDecided()
	w.end(rec.ID, journal.OutcomeDone)
	w.wantDecided("node.transitioned w1: Purging to Purged")
}

func TestASupersededPurgeCountsAsDoneOnlyIfTheNodeIsGone(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.end(id, journal.OutcomeSuperseded)
	w.wantDecided("node.transitioned w1: Purging to Unknown", "policy.refused w1: purge-node by BackOff")
	w.gone("w1", "deleted")
	w.wantDecided("node.transitioned w1: Unknown to Purging", "node.transitioned w1: Purging to Purged", "policy.lifted w1: purge-node by BackOff")
}

func TestReasonsSayWhatWouldLiftThem(t *testing.T) {
	w := due(t, "w1")
	w.observe("w1", excluded, w.asLost("w1"))
	d := w.decide()
	refused := d.Events[len(d.Events)-1].Payload.(journal.PolicyRefused)
	if refused.Rule != RuleExcluded || !strings.Contains(refused.Reason, "when the label is removed") {
		t.Errorf("refusal: %+v", refused)
	}
}

func TestADryRunCancelsNothingThatIsReal(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.p.DryRun = true
	w.observe("w1")
	w.decide()
	if rec := w.s.Actions[id]; rec == nil || rec.Cancelling != nil {
		t.Errorf("the real purge is %+v", rec)
	}
	w.p.DryRun = false
	w.decide()
	if rec := w.s.Actions[id]; rec != nil && rec.Cancelling == nil {
		t.Error("an operator that is none lets it go on")
	}
}

func TestAnActionThatCannotBeReadIsNotCancelledBecauseItsSettingIsOff(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.s.Actions[id].Unreadable = "it is of a newer version"
	w.p.PurgeDeadNodes = false
	w.decide()
	if rec := w.s.Actions[id]; rec == nil || rec.Cancelling != nil {
		t.Errorf("the purge is %+v", rec)
	}
}
