package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestALostNodeIsUnknownSinceEKCOSawItLostWhateverItsTaintSays(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.observe("w1", unreachableSince(w.now.Add(-time.Minute)))
	d := w.wantDecided("node.transitioned w1: Healthy to Unknown")
	if got := w.node("w1").Since; !got.Equal(w.now) {
		t.Errorf("since: got %s, want %s", got, w.now)
	}
	if got := d.Events[0].Cause; got != w.node("w1").FactsSeq {
		t.Errorf("cause: got %d, want the fact %d", got, w.node("w1").FactsSeq)
	}
}

func TestATaintWithoutTimeCountsFromTheEventThatToldOfIt(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	told := w.now
	w.observe("w1", unreachableSince(time.Time{}))
	w.pass(time.Minute)
	w.observe("w1", unreachableSince(time.Time{}), excluded)
	w.decide()
	if got := w.node("w1").Since; !got.Equal(told) {
		t.Errorf("since: got %s, want %s", got, told)
	}
}

func TestATaintOfTheFutureCountsFromNow(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.observe("w1", unreachableSince(w.now.Add(time.Hour)))
	w.decide()
	if n := w.node("w1"); !n.Since.Equal(w.now) || !n.UnreachableSince.Equal(w.now) {
		t.Errorf("since %s and unreachable since %s, want %s", n.Since, n.UnreachableSince, w.now)
	}
}

func TestLossBeginsWithFirstTaint(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	tainted := func(effect string) factsOption {
		taint := journal.Taint{Key: journal.TaintUnreachable, Effect: effect, TimeAdded: w.now}
		return func(f *journal.NodeFacts) { f.Taints = append(f.Taints, taint) }
	}
	lost, first := w.now, tainted("NoSchedule")
	w.observe("w1", first)
	w.decide()
	w.pass(time.Second)
	second := tainted("NoExecute")
	for _, taints := range [][]factsOption{{second, first}, {second}} {
		w.observe("w1", taints...)
		if got := w.node("w1").UnreachableSince; !got.Equal(lost) {
			t.Errorf("with %d taints: unreachable since %s, want %s", len(taints), got, lost)
		}
	}
}

func TestALaterTaintCountsFromItsOwnTime(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.lose("w1")
	w.decide()
	w.pass(time.Minute)
	w.lose("w1") // back and lost again between two looks
	if got := w.node("w1").UnreachableSince; !got.Equal(w.now) {
		t.Errorf("unreachable since: got %s, want %s", got, w.now)
	}
}

func TestANodeThatAnswersAgainIsHealthy(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.decide()
	w.observe("w1")
	w.wantDecided("node.transitioned w1: Unknown to Healthy")
}

func TestACordonedNodeIsHealthyButNotReady(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.observe("w1", cordoned)
	w.wantDecided()
	w.wantState("w1", Healthy)
	if w.node("w1").Ready() {
		t.Error("a cordoned node counts as ready")
	}
}

func TestANodeDeletedBySomebodyElseIsGone(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.gone("w1", "deleted")
	d := w.wantDecided("node.transitioned w1: Healthy to Gone")
	if reason := d.Events[0].Payload.(journal.NodeTransitioned).Reason; !strings.Contains(reason, "not deleted by EKCO") {
		t.Errorf("reason: %q", reason)
	}
}

func TestANodeOfTheSameNameWithAnotherUIDIsAnotherMachine(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.terminating("w1", "a")
	w.pass(6 * time.Minute)
	w.decide()
	clearID := w.open(journal.ActionClearNode, "w1")

	w.observeUID("w1", "uid-new")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Clearing to Gone")
	if w.s.Actions[clearID].Status != fsm.Cancelling {
		t.Errorf("the clear of the replaced node is %s", w.s.Actions[clearID].Status)
	}
	if n := Of(w.s, "uid-new"); n.State != Healthy {
		t.Errorf("the new node is %s", n.State)
	}
	if got := ByName(w.s, "w1"); len(got) != 2 || got[0].UID != "uid-new" {
		t.Errorf("machines of the name: %v", got)
	}
}

func TestALateListDoesNotReviveAReplacedNode(t *testing.T) {
	w := newWorld(t)
	born := func(at time.Time) factsOption { return func(f *journal.NodeFacts) { f.CreatedAt = at } }
	w.observeUID("w1", "old", born(epoch.Add(-time.Hour)))
	w.observeUID("w1", "new", born(epoch))
	w.observeUID("w1", "old", born(epoch.Add(-time.Hour)), excluded)
	if !Of(w.s, "new").Present() || Of(w.s, "old").Present() {
		t.Error("the older object took the name back")
	}
}

func TestANodeThatReappearsUnderItsUIDIsNoLongerGone(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.gone("w1", "absent at start")
	w.decide()
	w.observe("w1")
	w.wantDecided("node.transitioned w1: Gone to Healthy")
	w.gone("w1", "deleted")
	w.decide()
	w.lose("w1")
	w.wantDecided("node.transitioned w1: Gone to Unknown")
	if len(w.s.Finished) != 0 {
		t.Errorf("finished machines: %v", w.s.Finished)
	}
}

func TestOnlyTheNewestThousandFinishedMachinesAreKept(t *testing.T) {
	w := newWorld(t)
	for i := range 1050 {
		name := fmt.Sprintf("w%04d", i)
		w.observe(name)
		w.gone(name, "deleted")
		w.write(fsm.Decide(w.s, w.p.whole(), w.now).Events...)
	}
	if len(w.s.Things) != 1000 || len(w.s.Finished) != 1000 {
		t.Fatalf("kept %d machines, %d finished", len(w.s.Things), len(w.s.Finished))
	}
	if w.node("w0049") != nil || w.node("w0050") == nil {
		t.Error("the oldest were not the ones forgotten")
	}
	if len(ByName(w.s, "w0049")) != 0 {
		t.Error("a forgotten machine is still found by name")
	}
}

func TestAFinishedMachineWithAnOpenActionIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	w.observe("first")
	w.gone("first", "deleted")
	w.decide()
	w.gone("first", "deleted")
	id := w.mustAdmit(ask("first")).Action
	w.act(id, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "r"})
	w.tell(journal.TypeNodeTransitioned, w.node("first").Subject, journal.NodeTransitioned{From: Purging, To: Gone, Event: "gone"})
	for i := range 1000 {
		name := fmt.Sprintf("w%04d", i)
		w.observe(name)
		w.gone(name, "deleted")
		w.write(journal.Draft{Type: journal.TypeNodeTransitioned, Subject: w.node(name).Subject, Payload: journal.NodeTransitioned{From: Healthy, To: Gone, Event: "gone"}})
	}
	if w.node("first") == nil || w.node("w0000") != nil || len(w.s.Things) != 1000 {
		t.Errorf("first kept: %v, machines: %d", w.node("first") != nil, len(w.s.Things))
	}
}

func TestTheWayOfANodeFollowsFromTheTable(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	n := w.lose("w1")
	n.Last = map[journal.ActionKind]*fsm.Ending{journal.ActionPurgeNode: {Action: "a"}}
	look := fsm.NewWorld(w.s, w.p.whole(), w.now)
	// The first transition of the way from one state, in the order of all, towards
	// another; "" for the ways that no goal asks for.
	all := []journal.NodeState{Healthy, Unknown, Clearing, Cleared, Purging, Purged, Gone}
	want := map[journal.NodeState][]string{
		Healthy:  {"", "lost", "lost", "", "purge", "purge", "gone"},
		Unknown:  {"returned", "", "clear", "", "purge", "purge", "gone"},
		Clearing: {"returned", "stopped", "", "cleared", "purge", "purge", "gone"},
		Cleared:  {"returned", "", "clear", "", "purge", "purge", "gone"},
		Purging:  {"returned", "stopped", "clear", "", "", "purged", "gone"},
		Gone:     {"returned", "lost", "lost", "", "purge", "purge", ""},
	}
	for from, events := range want {
		for i, event := range events {
			if event == "" {
				continue
			}
			draft, to, ok := look.Towards(n.Thing, from, all[i])
			told, _ := draft.Payload.(journal.NodeTransitioned)
			if !ok || told.Event != event || told.From != from || told.To != to || told.Reason == "" {
				t.Errorf("from %s towards %s the table leads by %+v, want %q", from, all[i], told, event)
			}
			n.State = from
			if w.tell(journal.TypeNodeTransitioned, n.Subject, told); n.State != to || len(w.s.Problems) > 0 {
				t.Fatalf("from %s %q should lead to %s, the machine is %s: %q", from, event, to, n.State, w.s.Problems)
			}
			n.Last = map[journal.ActionKind]*fsm.Ending{journal.ActionPurgeNode: {Action: "a"}}
		}
	}
	for _, to := range all {
		if _, next, ok := look.Towards(n.Thing, Purged, to); ok {
			t.Errorf("%s is final, and leads to %s", Purged, next)
		}
	}
}

func TestATransitionThatTheTableDoesNotAllowIsNotFolded(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.tell(journal.TypeNodeTransitioned, w.node("w1").Subject, journal.NodeTransitioned{From: Healthy, To: Purged, Event: "purged"})
	w.wantState("w1", Healthy)
	if len(w.s.Problems) != 1 {
		t.Errorf("problems: %q", w.s.Problems)
	}
}

func TestANodeThatIsOnlyNotReadyIsNeitherLostNorClearedNorPurged(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3")
	w.p.MaxUnknown = MaxUnknown{}
	for _, name := range []string{"w1", "w2"} {
		w.observe(name, unready)
		w.terminating(name, "pod-of-"+name)
	}
	w.pass(24 * time.Hour)
	if d := w.wantDecided(); !d.Next.IsZero() {
		t.Errorf("something is to be decided at %s", d.Next)
	}
	w.wantState("w1", Healthy)
	if n := w.node("w1"); n.Unreachable() || n.Ready() || countsOf(w.s).unreachable != 0 {
		t.Errorf("unreachable: %v, ready: %v, counted: %+v", n.Unreachable(), n.Ready(), countsOf(w.s))
	}
}

func TestALostNodeWhoseKubeletAnswersAgainAndIsNotReadyHasReturned(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.decide()
	w.observe("w1", unready)
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Clearing to Healthy")
}
