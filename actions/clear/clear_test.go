package clear_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// world is a world of nodes of which one is cleared.
type world struct{ *nodestest.World }

// inBubble runs a test with a fake clock, side by side with others.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	actionstest.InBubble(t, func(w *actionstest.World) { test(w.T, &world{nodestest.New(w)}) })
}

// kinds are the actions as one incarnation runs them.
func (w *world) kinds(f *actionstest.Fuse) []actions.Definition {
	return []actions.Definition{clear.New(nodestest.Mortal(w.Cluster, f))}
}

func (w *world) cfg() actions.Config { return w.Config(w.kinds(nil)) }

// lostNode adds a lost node with that many terminating pods and asks to clear
// it.
func lostNode(w *world, pods int) kube.Node {
	node := w.Cluster.AddNode("w1", journal.RoleWorker)
	for i := range pods {
		w.Cluster.AddPod("default", fmt.Sprintf("web-%d", i), "w1")
	}
	w.Cluster.LoseNode("w1")
	request := journal.ActionRequested{
		Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: w.Cluster.TerminatePods("w1", time.Now().Add(-time.Minute))},
	}
	w.Request(journal.NodeSubject("w1", node.UID), request)
	return node
}

func TestClearingFreesEveryPodUnderARecordOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.RunToEnd(w.cfg())
		if w.PodsLeft() != 0 || w.LastLine() != "ended done" {
			t.Errorf("%d pods left, %q", w.PodsLeft(), w.Story())
		}
		for i := range 3 {
			id := fmt.Sprintf("delete-pod default/web-%d", i)
			if w.Count("started "+id+" #1") != 1 || w.Count("done "+id+" #1") != 1 || w.Cluster.Count(id) != 1 {
				t.Errorf("%s: the journal says %q", id, w.Story())
			}
		}
	})
}

func TestClearingAHundredPodsCostsFewAppends(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.SetLatency(10 * time.Millisecond)
		lostNode(w, 100)
		counting := &actionstest.CountingStore{Store: w.Store}
		cfg := w.cfg()
		cfg.Store = counting
		w.RunToEnd(cfg)
		if w.PodsLeft() != 0 || counting.Appends() > 40 {
			t.Errorf("%d pods left after %d appends", w.PodsLeft(), counting.Appends())
		}
	})
}

func TestAPodThatCannotBeDeletedDoesNotStopTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 40)
		w.Cluster.Stick("default", "web-0", true)
		cfg := w.cfg()
		var waits sync.Map
		cfg.Watcher = func(_, step string, p actions.Progress) { waits.Store(step, p) }
		r := w.Start(cfg)
		w.Pass(time.Second)
		if w.PodsLeft() != 1 {
			t.Errorf("%d pods left after a second, want the stuck one", w.PodsLeft())
		}
		w.Pass(4 * time.Second)
		if p, _ := waits.Load("delete-pod default/web-0"); p == nil || !p.(actions.Progress).NeedsOthers || !strings.Contains(p.(actions.Progress).Missing, "example.com/stuck") {
			t.Errorf("of the stuck pod it says %+v", p)
		}
		w.Pass(time.Hour)
		if w.Count("stalled delete-pod default/web-0") != 1 {
			t.Errorf("the journal ends with %q", w.LastLine())
		}
		w.Cluster.Stick("default", "web-0", false)
		w.Retry(r)
		if err := r.Wait(); err != nil || w.PodsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.PodsLeft())
		}
	})
}

func TestANodeThatCameBackIsNotCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.Cluster.ReturnNode("w1")
		w.RunToEnd(w.cfg())
		w.WantStory("requested", "planned 3", "ended abandoned node w1 answers again")
		if w.PodsLeft() != 3 {
			t.Errorf("%d pods left, want all 3", w.PodsLeft())
		}
	})
}

func TestANodeThatComesBackBetweenTwoBatchesKeepsTheRestOfItsPods(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.SetLatency(time.Second)
		lostNode(w, 40)
		w.Cluster.AfterEffect = func(string) { w.Cluster.ReturnNode("w1") }
		w.RunToEnd(w.cfg())
		if got := w.LastLine(); got != "ended abandoned node w1 answers again" {
			t.Errorf("the action %s", got)
		}
		if w.PodsLeft() != 24 {
			t.Errorf("%d pods left, want all but the first batch of 16", w.PodsLeft())
		}
	})
}

func TestTheReplacementOfANodeIsNotCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.Cluster.ReplaceNode("w1")
		w.Cluster.LoseNode("w1")
		w.RunToEnd(w.cfg())
		if !strings.HasPrefix(w.LastLine(), "ended abandoned node w1 was replaced") || w.PodsLeft() != 3 {
			t.Errorf("the action %s, %d pods left", w.LastLine(), w.PodsLeft())
		}
	})
}

func TestPodsOfANodeThatIsGoneForGoodAreCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.Cluster.RemoveNode("w1")
		w.RunToEnd(w.cfg())
		if w.PodsLeft() != 0 {
			t.Errorf("%d pods left", w.PodsLeft())
		}
	})
}

func TestAnOutageHoldsAClearAndItGoesOnAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.Cluster.Outage(true)
		r := w.Start(w.cfg())
		w.Pass(3 * time.Hour)
		w.WantStory("requested", "planned 3", `held "delete-pod default/web-0" by NodeStillGone`)
		w.Cluster.Outage(false)
		if err := r.Wait(); err != nil || w.PodsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.PodsLeft())
		}
	})
}

func TestAnOutageInTheMiddleOfAClearSpendsNoBudget(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.SetLatency(time.Second)
		lostNode(w, 3)
		var once sync.Once
		w.Cluster.AfterEffect = func(string) { once.Do(func() { w.Cluster.Outage(true) }) }
		r := w.Start(w.cfg())
		w.Pass(5 * time.Hour)
		if w.Count("stalled") != 0 || w.Count("held") != 1 {
			t.Errorf("the journal says %q", w.Story())
		}
		w.Cluster.Outage(false)
		if err := r.Wait(); err != nil || w.PodsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.PodsLeft())
		}
	})
}

func TestANewPodOfTheSameNameIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 1)
		w.Cluster.ReplacePod("default", "web-0", "w2")
		w.RunToEnd(w.cfg())
		if w.PodsLeft() != 1 || w.LastLine() != "ended done" {
			t.Errorf("%d pods left, %q", w.PodsLeft(), w.Story())
		}
	})
}

func TestADeletionWhoseAnswerWasLostIsProvedAndNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 1)
		w.Cluster.LoseAnswer("delete-pod default/web-0")
		w.RunToEnd(w.cfg())
		w.WantStory("requested", "planned 1", "started delete-pod default/web-0 #1", "failed delete-pod default/web-0 #1",
			"done delete-pod default/web-0 #1 already", "ended done")
		if got := w.Cluster.Count("delete-pod default/web-0"); got != 1 {
			t.Errorf("%d deletions", got)
		}
	})
}

func TestAMissingPermissionStallsTheClearAndIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 2)
		w.Cluster.Forbid(kubesim.DeletePods)
		r := w.Start(w.cfg())
		w.Pass(time.Hour)
		if w.Count("stalled") != 1 {
			t.Errorf("stalled %d times, want once: %q", w.Count("stalled"), w.Story())
		}
		if reason := w.Record().Stalled.Reason; !strings.Contains(reason, "lacks the permission to delete pods") {
			t.Errorf("stalled because %q", reason)
		}
		w.Cluster.Allow(kubesim.DeletePods)
		w.Retry(r)
		if err := r.Wait(); err != nil || w.PodsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.PodsLeft())
		}
	})
}

func TestTwoPodsOfOneNameAreTwoSteps(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		old := w.Cluster.AddPod("default", "web-0", "w1")
		present := w.Cluster.ReplacePod("default", "web-0", "w1")
		w.Cluster.LoseNode("w1")
		w.Request(journal.NodeSubject("w1", node.UID), journal.ActionRequested{
			Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: []journal.PodRef{old.PodRef, present.PodRef, present.PodRef}},
		})
		w.RunToEnd(w.cfg())
		synctest.Wait()
		if w.PodsLeft() != 0 || w.Count("planned 2") != 1 {
			t.Errorf("%d pods left, %q", w.PodsLeft(), w.Story())
		}
	})
}
