package node

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// lostWithPods is a world in which w1 is lost, w2 to w4 are fine, and pods a
// and b of w1 terminate. Nothing is eligible yet.
func lostWithPods(t *testing.T) *world {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3", "w4")
	w.p.PurgeDeadNodes = false
	w.lose("w1")
	w.terminating("w1", "a")
	w.terminating("w1", "b")
	w.wantDecided("node.transitioned w1: Healthy to Unknown")
	return w
}

func TestPodsAreClearedExactlyWhenTheNodeIsLostForLongEnough(t *testing.T) {
	w := lostWithPods(t)
	due := w.now.Add(w.p.ClearAfter)
	if d := w.decide(); !d.Next.Equal(due) {
		t.Fatalf("next: got %s, want %s", d.Next, due)
	}
	w.now = due.Add(-time.Nanosecond)
	w.wantDecided()
	w.now = due
	d := w.wantDecided("action.requested w1: clear-node a b", "node.transitioned w1: Unknown to Clearing")
	if got, want := d.Events[0].Cause, w.node("w1").Pods[uidOf("b")].Seq; got != want {
		t.Errorf("cause: got %d, want the fact %d", got, want)
	}
	if !d.Next.IsZero() {
		t.Errorf("next: got %s, want none", d.Next)
	}
}

func TestAPodIsClearedExactlyWhenItsGraceIsOver(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	w.terminating("w1", "c")
	due := w.now.Add(w.p.PodGrace)
	if d := w.wantDecided(); !d.Next.Equal(due) {
		t.Fatalf("next: got %s, want %s", d.Next, due)
	}
	w.now = due
	w.wantDecided("action.requested w1: clear-node c")
	w.wantState("w1", Clearing)
}

func TestAStuckClearDoesNotKeepOtherPodsFromBeingCleared(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	first := w.open(journal.ActionClearNode, "w1")
	w.act(first, journal.TypeActionStalled, journal.ActionStalled{Step: "delete-pod default/a", Reason: "spent"})
	w.terminating("w1", "c")
	w.pass(time.Minute)
	w.wantDecided("action.requested w1: clear-node c")
}

func TestANodeIsClearedWhenNoActionAndNoTerminatingPodIsLeft(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	w.podGone("w1", "a")
	w.end(w.open(journal.ActionClearNode, "w1"), journal.OutcomeDone)
	w.wantDecided()
	w.wantState("w1", Clearing)
	w.podGone("w1", "b")
	w.wantDecided("node.transitioned w1: Clearing to Cleared")

	w.terminating("w1", "c")
	w.wantDecided()
	w.pass(time.Minute)
	w.wantDecided("action.requested w1: clear-node c", "node.transitioned w1: Cleared to Clearing")
}

func TestANodeThatCameBackIsNotClearedAndItsActionIsCancelled(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	id := w.open(journal.ActionClearNode, "w1")
	w.terminating("w1", "c")
	w.observe("w1")
	w.pass(time.Minute)
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Clearing to Healthy")
	w.end(id, journal.OutcomeAbandoned)
	w.wantDecided()

	w.lose("w1")
	w.pass(6 * time.Minute)
	w.wantDecided("node.transitioned w1: Healthy to Unknown", "action.requested w1: clear-node a b c", "node.transitioned w1: Unknown to Clearing")
}

func TestANodeLostAgainIsNotClearedTwiceAtOnce(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	id := w.open(journal.ActionClearNode, "w1")
	w.observe("w1")
	w.decide()
	w.lose("w1")
	w.pass(6 * time.Minute)
	w.wantDecided("node.transitioned w1: Healthy to Unknown", "node.transitioned w1: Unknown to Clearing")
	w.end(id, journal.OutcomeAbandoned)
	w.wantDecided("action.requested w1: clear-node a b")
}

func TestANodeThatVanishedIsNotCleared(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	w.gone("w1", "deleted")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Clearing to Gone")
}

func TestADryRunClearIsNotRepeatedForItsPods(t *testing.T) {
	w := lostWithPods(t)
	w.p.DryRun = true
	w.pass(6 * time.Minute)
	w.decide()
	id := w.open(journal.ActionClearNode, "w1")
	if !w.s.Actions[id].Request.DryRun {
		t.Error("the action is not marked as a dry run")
	}
	w.end(id, journal.OutcomeDryRun)
	w.wantDecided("node.transitioned w1: Clearing to Unknown")
	w.terminating("w1", "c")
	w.pass(time.Hour)
	w.wantDecided("action.requested w1: clear-node c", "node.transitioned w1: Unknown to Clearing")
}

func TestPodsOfACancelledClearAreLeftAloneUntilTheNodeWasHealthy(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	w.end(w.open(journal.ActionClearNode, "w1"), journal.OutcomeCancelled)
	w.wantDecided("node.transitioned w1: Clearing to Unknown")
	w.pass(time.Hour)
	w.wantDecided()
	w.observe("w1")
	w.decide()
	w.lose("w1")
	w.pass(time.Hour)
	w.wantDecided("node.transitioned w1: Healthy to Unknown", "action.requested w1: clear-node a b", "node.transitioned w1: Unknown to Clearing")
}

func TestClearingCanBeSwitchedOff(t *testing.T) {
	w := lostWithPods(t)
	w.p.ClearDeadNodes = false
	w.pass(time.Hour)
	if d := w.wantDecided(); !d.Next.IsZero() {
		t.Errorf("next: got %s, want none", d.Next)
	}
}

func TestAnAdoptedClearKeepsItsPodsFromASecondOne(t *testing.T) {
	w := newWorld(t)
	w.cluster("w2", "w3", "w4")
	rec := journal.ActionRecord{
		ID: "clear-w1-77", Kind: journal.ActionClearNode, Subject: journal.NodeSubject("w1", uidOf("w1")), RequestedAt: w.now,
		Request: journal.ActionRequested{Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: []journal.PodRef{{Namespace: "default", Name: "a", UID: uidOf("a")}}}},
		Planned: true, Status: fsm.Running,
	}
	w.write(journal.Draft{Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator, Payload: journal.ActionAdopted{Record: rec}})
	w.wantDecided("node.transitioned w1: Unknown to Clearing")
	w.lose("w1")
	w.terminating("w1", "a")
	w.terminating("w1", "b")
	w.pass(time.Hour / 2)
	w.wantDecided("action.requested w1: clear-node b")
}

func TestWhatWasBegunForALossThatHasEndedIsNotGoneOnWithForTheNext(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"the return was seen":     func(w *world) { w.observe("w1"); w.lose("w1") },
		"the return was not seen": func(w *world) { w.lose("w1") },
	} {
		t.Run(name, func(t *testing.T) {
			w := lostWithPods(t)
			w.p.PurgeDeadNodes = true
			w.pass(time.Hour)
			w.decide()
			clearing, purging := w.open(journal.ActionClearNode, "w1"), w.open(journal.ActionPurgeNode, "w1")
			lose(w)
			w.wantDecided("action.cancelling w1", "action.cancelling w1", "node.transitioned w1: Purging to Clearing")
			w.end(clearing, journal.OutcomeAbandoned)
			w.end(purging, journal.OutcomeAbandoned)
			w.wantDecided()
			w.pass(5 * time.Minute)
			w.wantDecided("action.requested w1: clear-node a b")
			if left := w.node("w1").Outlived; len(left) != 0 {
				t.Errorf("remembered are %q", left)
			}
		})
	}
}

func TestOfALossThatHasEndedOnlyWhatCanBeGivenUpIsGivenUp(t *testing.T) {
	w := due(t, "w1", "w2")
	w.decide()
	purging := w.open(journal.ActionPurgeNode, "w1")
	w.plan(purging)
	w.startStep(purging, "look")
	w.act(purging, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
	w.startStep(purging, "delete-node")
	w.observe("w1")
	w.lose("w1")
	byHand := w.mustAdmit(ask("w2")).Action
	w.observe("w2")
	w.lose("w2")
	w.decide()
	for _, id := range []string{purging, byHand} {
		if w.s.Actions[id].Cancelling != nil {
			t.Errorf("%s is being cancelled", id)
		}
	}
}

func TestWhatIsSwitchedOffIsNotGoneOnWithUnlessItIsPastItsPointOfNoReturn(t *testing.T) {
	w := lostWithPods(t)
	w.p.PurgeDeadNodes = true
	w.pass(time.Hour)
	w.decide()
	w.p.PurgeDeadNodes, w.p.ClearDeadNodes, w.p.Passive = false, false, true
	w.wantDecided() // a command's own settings are not the operator's
	w.p.Passive = false
	d := w.wantDecided("action.cancelling w1", "action.cancelling w1")
	for _, draft := range d.Events {
		if reason := draft.Payload.(journal.ActionCancelling).Reason; !strings.Contains(reason, "_dead_nodes is off") {
			t.Errorf("the reason is %q", reason)
		}
	}

	w = due(t, "w1")
	w.decide()
	purging := w.open(journal.ActionPurgeNode, "w1")
	w.plan(purging)
	w.startStep(purging, "look")
	w.act(purging, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
	w.startStep(purging, "delete-node")
	w.p.PurgeDeadNodes = false
	w.wantDecided()
}

// Old events do not say how long a pod may take.
func TestAPodWhoseTimeWasOverWhenItWasSeenHasItsGraceAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3")
	w.lose("w1")
	w.decide()
	w.pass(w.p.ClearAfter)
	w.tell(journal.TypePodTerminating, journal.PodSubject("default", "a", "uid-a", "w1"),
		journal.PodTerminating{NodeUID: uidOf("w1"), DeletionTimestamp: w.now.Add(-time.Hour)})
	w.wantDecided()
	w.pass(w.p.PodGrace)
	w.wantDecided("action.requested w1: clear-node a", "node.transitioned w1: Unknown to Clearing")
}

func TestOtherNewsOfALostNodeEndNothingThatWasBegunForItsLoss(t *testing.T) {
	w := lostWithPods(t)
	w.pass(time.Hour)
	w.decide()
	clearing, since := w.open(journal.ActionClearNode, "w1"), w.node("w1").UnreachableSince
	w.observe("w1", unreachableSince(since), func(facts *journal.NodeFacts) { facts.InternalIP = "10.9.9.9" })
	w.wantDecided()
	if left := w.node("w1").Outlived; len(left) != 0 || w.open(journal.ActionClearNode, "w1") != clearing {
		t.Errorf("outlived are %q", left)
	}
}
