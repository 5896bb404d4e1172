package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func flapping(f *journal.NodeFacts) { f.Flapping = true }

// settle tells that a node which flapped was lost for that long.
func (w *world) settle(name string, lostFor time.Duration, flaps int) {
	w.t.Helper()
	facts := journal.NodeFacts{Role: journal.RoleWorker}
	unreachableSince(w.now.Add(-lostFor))(&facts)
	w.tell(journal.TypeNodeObserved, journal.NodeSubject(name, uidOf(name)), journal.NodeObserved{
		NodeFacts: facts, Flaps: flaps, UnreachableFor: journal.Duration(lostFor),
	})
}

func TestNothingIsDoneAboutANodeThatFlapsHoweverLong(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3", "w4")
	w.lose("w1", flapping)
	w.terminating("w1", "a")
	w.wantDecided("node.transitioned w1: Healthy to Unknown")
	for range 48 {
		w.pass(time.Hour)
		w.wantDecided()
	}
	w.observe("w1")
	w.wantDecided("node.transitioned w1: Unknown to Healthy")
}

func TestANodeThatFlapsCountsAsLost(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3")
	w.lose("w1")
	w.decide()
	w.pass(w.p.PurgeAfter)
	for _, name := range []string{"w2", "w3", "p1", "p2"} {
		w.lose(name, flapping)
	}
	w.wantDecided(
		"node.transitioned p1: Healthy to Unknown", "node.transitioned p2: Healthy to Unknown",
		"node.transitioned w2: Healthy to Unknown", "node.transitioned w3: Healthy to Unknown",
		"policy.refused Cluster: purge-node by StormBrake",
	)
}

func TestALossOfANodeThatFlappedIsActedOnNoLaterAndNoEarlierThanAnyOther(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3", "w4")
	w.lose("w1", flapping)
	w.decide()
	w.pass(24 * time.Hour) // it flaps for a day
	lost := w.now
	w.pass(w.p.ClearAfter / 2)
	w.settle("w1", w.p.ClearAfter/2, 1440)
	w.terminating("w1", "a")
	w.wantDecided()
	w.now = lost.Add(w.p.ClearAfter - time.Nanosecond)
	w.wantDecided()
	w.now = lost.Add(w.p.ClearAfter)
	w.wantDecided("action.requested w1: clear-node a", "node.transitioned w1: Unknown to Clearing")
	w.now = lost.Add(w.p.PurgeAfter - time.Nanosecond)
	w.wantDecided()
	w.now = lost.Add(w.p.PurgeAfter)
	w.wantDecided("action.requested w1: purge-node", "node.transitioned w1: Clearing to Purging")
}

func TestALossOfANodeThatFlappedCountsByWhatEKCOSawWhateverItsTaintSays(t *testing.T) {
	for _, taint := range []time.Time{{}, epoch.Add(-24 * time.Hour), epoch.Add(24 * time.Hour)} {
		w := newWorld(t)
		w.cluster("w1", "w2", "w3", "w4")
		w.observe("w1", unreachableSince(taint), flapping)
		w.pass(time.Hour)
		lost := w.now
		w.pass(time.Minute)
		w.tell(journal.TypeNodeObserved, journal.NodeSubject("w1", uidOf("w1")), journal.NodeObserved{
			NodeFacts: journal.NodeFacts{Role: journal.RoleWorker, Taints: []journal.Taint{{Key: journal.TaintUnreachable, TimeAdded: taint}}},
			Flaps:     7, UnreachableFor: journal.Duration(time.Minute),
		})
		if got := w.node("w1").UnreachableSince; !got.Equal(lost) {
			t.Errorf("with a taint of %s it is lost since %s, want %s", taint, got, lost)
		}
	}
}

func TestWhatWasBegunForALostNodeIsAbandonedWhenItBeginsToFlap(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3", "w4")
	w.lose("w1")
	w.terminating("w1", "a")
	w.decide()
	w.pass(w.p.PurgeAfter)
	w.decide()
	purge := w.open(journal.ActionPurgeNode, "w1")
	w.observe("w1", unreachableSince(w.now), flapping)
	w.decide()
	if w.s.Actions[purge].Cancelling == nil {
		t.Error("the purge of a node that flaps continues automatically")
	}
}

func TestANodeThatFlapsIsPurgedByHandLikeOneThatMayAnswer(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2")
	w.p.MinReadyWorkers = 2
	w.lose("w1", flapping)
	w.decide()
	request := Request{Kind: journal.ActionPurgeNode, Node: "w1", Actor: "cli:root@p1"}
	_, err := Admit(w.s, w.p.whole(), w.now, request)
	var refused *fsm.RefusedError
	if !errors.As(err, &refused) || refused.Rule != RuleReadyMinimums || !strings.Contains(refused.Reason, "flapping, 1 other worker") {
		t.Errorf("refused by %v, want the guard of ready nodes", err)
	}
	request.Force = true
	admission, err := Admit(w.s, w.p.whole(), w.now, request)
	if err != nil {
		t.Fatal(err)
	}
	w.write(admission.Events...)
	if rec := w.s.Actions[admission.Action]; !journal.PurgeInputOf(rec.Request).Live {
		t.Errorf("it is taken for dead: %+v", rec.Request)
	}
	w.wantDecided()
	w.observe("w1")
	w.wantDecided()
}

func TestWhatWasBegunForALossIsAbandonedAlsoIfTheNodeFlapsDuringThatLoss(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	purge := w.open(journal.ActionPurgeNode, "w1")
	w.observe("w1", w.asLost("w1"), flapping)
	w.decide()
	if w.s.Actions[purge].Cancelling == nil {
		t.Error("the purge of a node that flaps continues automatically")
	}
}
