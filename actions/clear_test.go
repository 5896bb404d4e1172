package actions_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func productKinds(w *world) []actions.Definition {
	return []actions.Definition{
		clear.New(w.cluster),
		purge.New(w.cluster, w.parts(nil)...),
	}
}

// lostNode adds a lost node with that many terminating pods and asks to clear
// it.
func lostNode(w *world, pods int) kube.Node {
	node := w.cluster.AddNode("w1", journal.RoleWorker)
	for i := range pods {
		w.cluster.AddPod("default", fmt.Sprintf("web-%d", i), "w1")
	}
	w.cluster.LoseNode("w1")
	request := journal.ActionRequested{
		Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: w.cluster.TerminatePods("w1", time.Now().Add(-time.Minute))},
	}
	w.request(journal.NodeSubject("w1", node.UID), request)
	return node
}

func (w *world) podsLeft() int {
	_, pods, _ := w.cluster.Snapshot()
	return len(pods)
}

func TestClearingFreesEveryPodUnderARecordOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.runToEnd(w.config(productKinds(w)))
		if w.podsLeft() != 0 || w.lastLine() != "ended done" {
			t.Errorf("%d pods left, %q", w.podsLeft(), w.story())
		}
		for i := range 3 {
			id := fmt.Sprintf("delete-pod default/web-%d", i)
			if w.count("started "+id+" #1") != 1 || w.count("done "+id+" #1") != 1 || w.cluster.Count(id) != 1 {
				t.Errorf("%s: the journal says %q", id, w.story())
			}
		}
	})
}

func TestClearingAHundredPodsCostsFewAppends(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.SetLatency(10 * time.Millisecond)
		lostNode(w, 100)
		counting := &countingStore{Store: w.store}
		cfg := w.config(productKinds(w))
		cfg.Store = counting
		w.runToEnd(cfg)
		if w.podsLeft() != 0 || counting.appends.Load() > 40 {
			t.Errorf("%d pods left after %d appends", w.podsLeft(), counting.appends.Load())
		}
	})
}

func TestAPodThatCannotBeDeletedDoesNotStopTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 40)
		w.cluster.Stick("default", "web-0", true)
		r := w.start(w.config(productKinds(w)))
		letPass(time.Second)
		if w.podsLeft() != 1 {
			t.Errorf("%d pods left after a second, want the stuck one", w.podsLeft())
		}
		letPass(time.Hour)
		if w.count("stalled delete-pod default/web-0") != 1 {
			t.Errorf("the journal ends with %q", w.lastLine())
		}
		w.cluster.Stick("default", "web-0", false)
		w.retry(r)
		if err := r.wait(); err != nil || w.podsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.podsLeft())
		}
	})
}

func TestANodeThatCameBackIsNotCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.cluster.ReturnNode("w1")
		w.runToEnd(w.config(productKinds(w)))
		w.wantStory("requested", "planned 3", "ended abandoned node w1 answers again")
		if w.podsLeft() != 3 {
			t.Errorf("%d pods left, want all 3", w.podsLeft())
		}
	})
}

func TestANodeThatComesBackBetweenTwoBatchesKeepsTheRestOfItsPods(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.SetLatency(time.Second)
		lostNode(w, 40)
		w.cluster.AfterEffect = func(string) { w.cluster.ReturnNode("w1") }
		w.runToEnd(w.config(productKinds(w)))
		if got := w.lastLine(); got != "ended abandoned node w1 answers again" {
			t.Errorf("the action %s", got)
		}
		if w.podsLeft() != 24 {
			t.Errorf("%d pods left, want all but the first batch of 16", w.podsLeft())
		}
	})
}

func TestTheReplacementOfANodeIsNotCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.cluster.ReplaceNode("w1")
		w.cluster.LoseNode("w1")
		w.runToEnd(w.config(productKinds(w)))
		if !strings.HasPrefix(w.lastLine(), "ended abandoned node w1 was replaced") || w.podsLeft() != 3 {
			t.Errorf("the action %s, %d pods left", w.lastLine(), w.podsLeft())
		}
	})
}

func TestPodsOfANodeThatIsGoneForGoodAreCleared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.cluster.RemoveNode("w1")
		w.runToEnd(w.config(productKinds(w)))
		if w.podsLeft() != 0 {
			t.Errorf("%d pods left", w.podsLeft())
		}
	})
}

func TestAnOutageHoldsAClearAndItGoesOnAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 3)
		w.cluster.Outage(true)
		r := w.start(w.config(productKinds(w)))
		letPass(3 * time.Hour)
		w.wantStory("requested", "planned 3", `held "delete-pod default/web-0" by NodeStillGone`)
		w.cluster.Outage(false)
		if err := r.wait(); err != nil || w.podsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.podsLeft())
		}
	})
}

func TestAnOutageInTheMiddleOfAClearSpendsNoBudget(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.SetLatency(time.Second)
		lostNode(w, 3)
		var once sync.Once
		w.cluster.AfterEffect = func(string) { once.Do(func() { w.cluster.Outage(true) }) }
		r := w.start(w.config(productKinds(w)))
		letPass(5 * time.Hour)
		if w.count("stalled") != 0 || w.count("held") != 1 {
			t.Errorf("the journal says %q", w.story())
		}
		w.cluster.Outage(false)
		if err := r.wait(); err != nil || w.podsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.podsLeft())
		}
	})
}

func TestANewPodOfTheSameNameIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 1)
		w.cluster.ReplacePod("default", "web-0", "w2")
		w.runToEnd(w.config(productKinds(w)))
		if w.podsLeft() != 1 || w.lastLine() != "ended done" {
			t.Errorf("%d pods left, %q", w.podsLeft(), w.story())
		}
	})
}

func TestADeletionWhoseAnswerWasLostIsProvedAndNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 1)
		w.cluster.LoseAnswer("delete-pod default/web-0")
		w.runToEnd(w.config(productKinds(w)))
		w.wantStory("requested", "planned 1", "started delete-pod default/web-0 #1", "failed delete-pod default/web-0 #1",
			"done delete-pod default/web-0 #1 already", "ended done")
		if got := w.cluster.Count("delete-pod default/web-0"); got != 1 {
			t.Errorf("%d deletions", got)
		}
	})
}

func TestAMissingPermissionStallsTheClearAndIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lostNode(w, 2)
		w.cluster.Forbid(kubesim.DeletePods)
		r := w.start(w.config(productKinds(w)))
		letPass(time.Hour)
		if w.count("stalled") != 1 {
			t.Errorf("stalled %d times, want once: %q", w.count("stalled"), w.story())
		}
		if reason := w.record().Stalled.Reason; !strings.Contains(reason, "lacks the permission to delete pods") {
			t.Errorf("stalled because %q", reason)
		}
		w.cluster.Allow(kubesim.DeletePods)
		w.retry(r)
		if err := r.wait(); err != nil || w.podsLeft() != 0 {
			t.Errorf("%v, %d pods left", err, w.podsLeft())
		}
	})
}

func TestTwoPodsOfOneNameAreTwoSteps(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.cluster.AddNode("w1", journal.RoleWorker)
		old := w.cluster.AddPod("default", "web-0", "w1")
		present := w.cluster.ReplacePod("default", "web-0", "w1")
		w.cluster.LoseNode("w1")
		w.request(journal.NodeSubject("w1", node.UID), journal.ActionRequested{
			Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: []journal.PodRef{old.PodRef, present.PodRef, present.PodRef}},
		})
		w.runToEnd(w.config(productKinds(w)))
		synctest.Wait()
		if w.podsLeft() != 0 || w.count("planned 2") != 1 {
			t.Errorf("%d pods left, %q", w.podsLeft(), w.story())
		}
	})
}
