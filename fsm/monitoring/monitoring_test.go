package monitoring

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestReplicasAreAsManyAsTheNodesAllowUpAndDown(t *testing.T) {
	for _, test := range []struct{ nodes, has, prometheus, alertmanager int }{
		{nodes: 1, has: 1},
		{nodes: 1, has: 3, prometheus: 1, alertmanager: 1},
		{nodes: 2, has: 2},
		{nodes: 2, has: 1, prometheus: 2, alertmanager: 2},
		{nodes: 3, has: 2, alertmanager: 3},
		{nodes: 3, has: 3, prometheus: 2},
		{nodes: 3, has: 0, prometheus: 2, alertmanager: 3},
		{nodes: 1000, has: 9, prometheus: 2, alertmanager: 3},
	} {
		t.Run(fmt.Sprintf("%d nodes, %d replicas", test.nodes, test.has), func(t *testing.T) {
			w := newWorld(t, test.nodes)
			w.observe(prometheus, 1, test.has)
			w.observe(alertmanager, 1, test.has)
			rec := w.wants(prometheus, test.prometheus)
			w.wants(alertmanager, test.alertmanager)
			if rec != nil && rec.Request.Change.From != fmt.Sprint(test.has) {
				t.Errorf("the change is %+v", rec.Request.Change)
			}
			if state := w.state(prometheus); (rec != nil) != (state == Scaling) {
				t.Errorf("it is %s", state)
			}
		})
	}
}

func TestWithoutKnownNodesNothingIsScaled(t *testing.T) {
	w := newWorld(t, 0)
	w.observe(prometheus, 1, 2)
	w.wants(prometheus, 0)
	if state := w.state(prometheus); state != InStep {
		t.Errorf("it is %s", state)
	}
}

func TestANodeThatIsNotReadyCounts(t *testing.T) {
	w := newWorld(t, 1)
	w.observe(prometheus, 1, 1)
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: node(7), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{
		Role: journal.RoleWorker, Taints: []journal.Taint{{Key: journal.TaintUnreachable}},
	}}})
	w.wants(prometheus, 2)
}

func TestReplicasFollowNodesThatComeAndGoHoweverOften(t *testing.T) {
	w := newWorld(t, 1)
	w.observe(prometheus, 1, 1)
	generation := int64(1)
	for range 5 {
		w.join(1)
		generation++
		w.set(w.wants(prometheus, 2), generation)
		w.leave(1) // before anybody has looked at what was set
		generation++
		w.set(w.wants(prometheus, 1), generation)
		w.observe(prometheus, generation, 1)
		w.wants(prometheus, 0)
		w.Pass(time.Minute)
	}
}

func TestWhatWasObservedBeforeTheLastChangeIsNoReasonToChangeAgain(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(prometheus, 7, 1)
	w.set(w.wants(prometheus, 2), 8)
	if state := w.state(prometheus); state != InStep {
		t.Errorf("after it was set it is %s", state)
	}
	w.wants(prometheus, 0)
	w.observe(prometheus, 7, 1) // an old answer
	w.wants(prometheus, 0)
	w.observe(prometheus, 9, 1) // somebody undid it before anybody looked
	w.wants(prometheus, 2)
}

func TestSomebodyWhoUndoesItTwiceIsNotFought(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(prometheus, 1, 1)
	for generation := int64(2); generation < 6; generation += 2 {
		w.set(w.wants(prometheus, 2), generation)
		w.observe(prometheus, generation+1, 1)
		w.Pass(time.Minute)
	}
	w.wants(prometheus, 0)
	if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested || !strings.Contains(w.S.Refusals[0].Reason, "the replicas of Prometheus monitoring/k8s") {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
	w.Pass(time.Hour)
	w.wants(prometheus, 2)
}

func TestADryRunAsksOnceAndAnewWhenTheNodesAreOthersOrItIsNoneAnyMore(t *testing.T) {
	w := newWorld(t, 2)
	w.P.DryRun = true
	w.observe(alertmanager, 1, 1)
	w.End(w.wants(alertmanager, 2), journal.OutcomeDryRun)
	w.wants(alertmanager, 0)
	w.join(2)
	w.End(w.wants(alertmanager, 3), journal.OutcomeDryRun)
	w.wants(alertmanager, 0)
	w.P.DryRun = false
	w.wants(alertmanager, 3)
}

func TestWhatWasCancelledIsAskedForAgainWhenSomethingIsNewOrAfterARest(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(prometheus, 1, 1)
	w.End(w.wants(prometheus, 2), journal.OutcomeCancelled)
	w.wants(prometheus, 0)
	w.observe(prometheus, 2, 1)
	w.End(w.wants(prometheus, 2), journal.OutcomeCancelled)
	w.Pass(fsm.RetryAfter - time.Second)
	w.wants(prometheus, 0)
	w.Pass(time.Second)
	w.wants(prometheus, 2)
}

// TestWhatALiveLookFoundOtherNodesForIsAskedForAnewAtOnce: and by the number that was
// asked for it rests, since the look may know more than what is observed.
func TestWhatALiveLookFoundOtherNodesForIsAskedForAnewAtOnce(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(alertmanager, 1, 1)
	w.End(w.wants(alertmanager, 2), journal.OutcomeAbandoned)
	w.wants(alertmanager, 0)
	w.join(2)
	w.wants(alertmanager, 3)
}

func TestWhatSomebodyElseHasSetIsNoLongerNeeded(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(prometheus, 1, 1)
	w.wants(prometheus, 2)
	if rec := w.wants(prometheus, 2); rec.Cancelling != nil {
		t.Errorf("it is cancelled while it is needed: %+v", rec.Cancelling)
	}
	w.observe(prometheus, 2, 2)
	if rec := w.open(prometheus); rec == nil || rec.Cancelling == nil || rec.Cancelling.Reason != "it has 2 replicas" {
		t.Errorf("the action is %+v", rec)
	}
}

func TestAnObjectThatIsGoneWantsNothingAndIsBackWithoutHarm(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(prometheus, 1, 1)
	w.Gone(Machine, prometheus, "deleted")
	w.wants(prometheus, 0)
	if state := w.state(prometheus); state != Removed || len(fsm.KnownObjects[journal.MonitoringFacts](w.S, Machine)) != 0 {
		t.Errorf("it is %s, known are %v", state, fsm.KnownObjects[journal.MonitoringFacts](w.S, Machine))
	}
	again := prometheus
	again.UID = "uid-new"
	w.observe(again, 1, 1)
	w.wants(again, 2)
	if known := fsm.KnownObjects[journal.MonitoringFacts](w.S, Machine)["monitoring/k8s"]; known.UID != "uid-new" || known.Replicas != 1 {
		t.Errorf("known is %+v", known)
	}
}

func TestOneOfThemCanBePausedByItsName(t *testing.T) {
	for _, word := range []string{"monitoring/k8s", "prometheus/monitoring/k8s"} {
		t.Run(word, func(t *testing.T) {
			w := newWorld(t, 2)
			w.observe(prometheus, 1, 1)
			w.observe(alertmanager, 1, 1)
			drafts, err := fsm.Pause(w.S, w.Now, word, "a test", 0, "cli:root@a")
			if err != nil {
				t.Fatal(err)
			}
			w.Write(drafts...)
			w.wants(prometheus, 0)
			w.wants(alertmanager, 2)
			if len(w.S.Refusals) != 1 || !strings.Contains(w.S.Refusals[0].Reason, "ekco resume monitoring/k8s") {
				t.Errorf("refused is %+v", w.S.Refusals)
			}
			if drafts, err = fsm.Resume(w.S, word, "", "cli:root@a"); err != nil {
				t.Fatal(err)
			}
			w.Write(drafts...)
			w.wants(prometheus, 2)
		})
	}
	w := newWorld(t, 2)
	if _, err := fsm.Pause(w.S, w.Now, "monitoring/grafana", "", 0, "cli:root@a"); !errors.Is(err, fsm.ErrUnknown) {
		t.Errorf("pausing what is not there: %v", err)
	}
}

func TestASnapshotHoldsWhatIsKnown(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(prometheus, 1, 1)
	w.set(w.wants(prometheus, 2), 2)
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
		t.Fatal(err)
	}
	w.wants(prometheus, 0)
	w.observe(prometheus, 3, 1)
	w.wants(prometheus, 2)
}
