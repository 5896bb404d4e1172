package envoy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/envoy"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/fsm"
	fsmenvoy "github.com/replicatedhq/ekco/fsm/envoy"
	pods "github.com/replicatedhq/ekco/internal/envoy"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// world is a cluster with Envoy's pods.
type world struct{ *nodestest.World }

func newWorld(bare *actionstest.World) *world {
	w := &world{nodestest.New(bare)}
	terms, err := fsm.TermsByKind(fsmenvoy.Capability())
	if err != nil {
		bare.T.Fatal(err)
	}
	w.Terms = terms
	return w
}

// inBubble runs a test with a fake clock, side by side with others.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	actionstest.InBubble(t, func(bare *actionstest.World) { test(bare.T, newWorld(bare)) })
}

// kinds are the actions as one incarnation runs them.
func (w *world) kinds(f *actionstest.Fuse) []actions.Definition {
	return []actions.Definition{envoy.New(nodestest.Mortal(w.Cluster, f))}
}

func (w *world) cfg() actions.Config { return w.Config(w.kinds(nil)) }

const (
	contour  = "projectcontour"
	envoyPod = "envoy-x7k2"
	deletes  = "delete-pod " + contour + "/" + envoyPod
)

// hangs is the status of an Envoy pod that is unready since then.
func hangs(since time.Time) kube.PodStatus {
	since = since.UTC().Truncate(time.Second)
	return kube.PodStatus{Phase: "Running", NotReadySince: since, Containers: []kube.Container{
		{Name: "shutdown-manager", Ready: true, RunningSince: since.Add(-time.Hour)},
		{Name: "envoy", RunningSince: since.Add(-time.Hour)},
	}}
}

// unreadyEnvoy adds a node with an Envoy pod that hangs and one that works, and asks to
// replace the first.
func unreadyEnvoy(w *world) kube.Pod {
	w.Cluster.AddNode("w1", journal.RoleWorker)
	w.Cluster.AddPod(contour, "envoy-works", "w1")
	pod := w.Cluster.AddPod(contour, envoyPod, "w1")
	pod.Status = hangs(time.Now().Add(-time.Hour))
	w.Cluster.SetPodStatus(contour, envoyPod, pod.Status)
	since, unready := pods.Unready(pod)
	if !unready {
		w.T.Fatalf("the pod does not hang: %+v", pod)
	}
	subject := journal.Subject{Kind: "Envoy", Name: "w1/envoy", Node: "w1"}
	w.Request(subject, journal.ActionRequested{Kind: journal.ActionRestartEnvoy, Input: pods.Of(pod, since)})
	return pod
}

func TestAnUnreadyEnvoyPodIsDeletedUnderARecord(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Watch()
		unreadyEnvoy(w)
		w.RunToEnd(w.cfg())
		w.WantStory("requested", "planned 1", "started "+deletes+" #1", "done "+deletes+" #1", "ended done")
		if w.PodsLeft() != 1 || w.Cluster.Count(deletes) != 1 {
			t.Errorf("%d pods left, %d deletes", w.PodsLeft(), w.Cluster.Count(deletes))
		}
	})
}

func TestAnEnvoyPodThatIsNotAsItWasSeenIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"ready again": {func(w *world) {
			w.Cluster.SetPodStatus(contour, envoyPod, kube.PodStatus{Phase: "Running", Containers: []kube.Container{
				{Name: "shutdown-manager", Ready: true, RunningSince: time.Now()}, {Name: "envoy", Ready: true, RunningSince: time.Now()},
			}})
		}, "is ready, or its containers do not run"},
		"unready anew":   {func(w *world) { w.Cluster.SetPodStatus(contour, envoyPod, hangs(time.Now())) }, "was ready or restarted since"},
		"asked to end":   {func(w *world) { w.Cluster.TerminatePods("w1", time.Now()) }, "pod projectcontour/envoy-x7k2 is being deleted"},
		"on a lost node": {func(w *world) { w.Cluster.LoseNode("w1") }, "node w1 is lost"},
		"without a node": {func(w *world) { w.Cluster.RemoveNode("w1") }, "node w1 is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				unreadyEnvoy(w)
				test.change(w)
				w.RunToEnd(w.cfg())
				if got := w.LastLine(); !strings.HasPrefix(got, "ended abandoned") || !strings.Contains(got, test.want) || w.Cluster.Count(deletes) != 0 {
					t.Errorf("it %s, %d deletes; want it abandoned because it %s", got, w.Cluster.Count(deletes), test.want)
				}
			})
		})
	}
}

func TestAPodThatIsGoneOrReplacedByItselfNeedsNoDelete(t *testing.T) {
	for name, change := range map[string]func(w *world, pod kube.Pod){
		"gone": func(w *world, pod kube.Pod) {
			if err := w.Cluster.ForceDeletePod(w.T.Context(), contour, envoyPod, pod.UID); err != nil {
				w.T.Fatal(err)
			}
		},
		"replaced": func(w *world, _ kube.Pod) {
			w.Cluster.ReplacePod(contour, envoyPod, "w1")
			w.Cluster.SetPodStatus(contour, envoyPod, hangs(time.Now().Add(-time.Hour)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				change(w, unreadyEnvoy(w))
				before := w.PodsLeft()
				w.RunToEnd(w.cfg())
				if w.LastLine() != "ended done" || w.PodsLeft() != before {
					t.Errorf("%d pods of %d left: %q", w.PodsLeft(), before, w.Story())
				}
			})
		})
	}
}

func TestARestartOfEnvoyWaitsWhileTheClusterDoesNotAnswerOrForbidsIt(t *testing.T) {
	for name, test := range map[string]struct{ fail, mend func(*kubesim.Cluster) }{
		"an outage":            {func(c *kubesim.Cluster) { c.Outage(true) }, func(c *kubesim.Cluster) { c.Outage(false) }},
		"pods cannot be read":  {func(c *kubesim.Cluster) { c.Forbid(kubesim.GetPods) }, func(c *kubesim.Cluster) { c.Allow(kubesim.GetPods) }},
		"nodes cannot be read": {func(c *kubesim.Cluster) { c.Forbid(kubesim.GetNodes) }, func(c *kubesim.Cluster) { c.Allow(kubesim.GetNodes) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				unreadyEnvoy(w)
				test.fail(w.Cluster)
				r := w.Start(w.cfg())
				w.Pass(10 * time.Minute)
				if w.PodsLeft() != 2 || w.Ended() || w.Count("held") != 1 {
					t.Errorf("%d pods left: %q", w.PodsLeft(), w.Story())
				}
				test.mend(w.Cluster)
				if err := r.Wait(); err != nil || w.PodsLeft() != 1 || w.LastLine() != "ended done" {
					t.Errorf("%v, %d pods left, %q", err, w.PodsLeft(), w.Story())
				}
			})
		})
	}
}

func TestADryRunDeletesNoEnvoyPod(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.BeforeEffect = func(effect string) { t.Errorf("a dry run had the effect %s", effect) }
		w.Cluster.AddNode("w1", journal.RoleWorker)
		pod := w.Cluster.AddPod(contour, envoyPod, "w1")
		pod.Status = hangs(time.Now())
		w.Cluster.SetPodStatus(contour, envoyPod, pod.Status)
		since, _ := pods.Unready(pod)
		w.Request(journal.Subject{Kind: "Envoy", Name: "w1/envoy", Node: "w1"}, journal.ActionRequested{
			Kind: journal.ActionRestartEnvoy, DryRun: true, Input: pods.Of(pod, since),
		})
		w.RunToEnd(w.cfg())
		if w.LastLine() != "ended dry-run" || w.PodsLeft() != 1 {
			t.Errorf("%d pods left: %q", w.PodsLeft(), w.Story())
		}
	})
}

// TestTwoEKCOsDeleteOneEnvoyPodOnce: each has a journal of its own.
func TestTwoEKCOsDeleteOneEnvoyPodOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.SetLatency(time.Second)
		unreadyEnvoy(w)
		other := newWorld(actionstest.NewWorld(t))
		other.Cluster = w.Cluster
		other.Request(w.Record().Subject, w.Record().Request)
		second := other.Start(other.cfg())
		w.RunToEnd(w.cfg())
		second.End()
		changed := 0
		for _, effect := range w.Cluster.Effects() {
			if effect.Name == deletes && effect.Changed {
				changed++
			}
		}
		if w.PodsLeft() != 1 || changed != 1 || w.LastLine() != "ended done" || other.LastLine() != "ended done" {
			t.Errorf("deleted %d times, %d pods left: %q, %q", changed, w.PodsLeft(), w.Story(), other.Story())
		}
	})
}

func TestTheNextPodIsNotDeletedByARestartThatIsAskedForTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		unreadyEnvoy(w)
		again := w.Record()
		w.RunToEnd(w.cfg())
		w.Cluster.AddPod(contour, envoyPod, "w1")
		w.Cluster.SetPodStatus(contour, envoyPod, hangs(time.Now().Add(-time.Hour)))
		w.Request(again.Subject, again.Request)
		w.RunToEnd(w.cfg())
		if got := w.LastLine(); w.PodsLeft() != 2 || got != "ended done" {
			t.Errorf("%d pods left, it %s", w.PodsLeft(), got)
		}
	})
}

// A pod with a finalizer is asked to end by a forced delete, too, and no more can be done.
func TestAPodWithAFinalizerIsDeletedAsFarAsItCan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		unreadyEnvoy(w)
		w.Cluster.Stick(contour, envoyPod, true)
		w.Cluster.AfterEffect = func(string) { w.Cluster.TerminatePods("w1", time.Now()) }
		w.RunToEnd(w.cfg())
		if w.LastLine() != "ended done" || w.PodsLeft() != 2 {
			t.Errorf("%d pods left: %q", w.PodsLeft(), w.Story())
		}
	})
}

// worksAgain has the kubelet say that the pod is ready.
func (w *world) worksAgain() {
	w.Cluster.SetPodStatus(contour, envoyPod, kube.PodStatus{Phase: "Running", Containers: []kube.Container{
		{Name: "shutdown-manager", Ready: true, RunningSince: time.Now()}, {Name: "envoy", Ready: true, RunningSince: time.Now()},
	}})
}

func TestAPodIsLookedAtAgainBeforeADeleteIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		unreadyEnvoy(w)
		w.Cluster.Forbid(kubesim.DeletePods)
		r := w.Start(w.cfg())
		w.Pass(time.Second)
		w.worksAgain()
		w.Cluster.Allow(kubesim.DeletePods)
		if err := r.Wait(); err != nil || w.Count("failed "+deletes) == 0 || !strings.HasPrefix(w.LastLine(), "ended abandoned") || w.PodsLeft() != 2 {
			t.Errorf("%v, %d pods left: %q", err, w.PodsLeft(), w.Story())
		}
	})
}

// The plan may be another version's, and come by the mirror.
func TestAPodIsLookedAtWhateverThePlanLists(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		pod := unreadyEnvoy(w)
		input, err := json.Marshal(pods.Of(pod, time.Time{}))
		if err != nil {
			t.Fatal(err)
		}
		w.AppendAbout(w.Record().Subject, fsm.ActorOperator, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{
			ID: deletes, Does: "delete-pod", Input: input, Timeout: journal.Duration(time.Minute),
		}}}}, journal.TypeActionPlanned)
		w.worksAgain()
		w.RunToEnd(w.cfg())
		if !strings.HasPrefix(w.LastLine(), "ended abandoned") || w.PodsLeft() != 2 {
			t.Errorf("%d pods left: %q", w.PodsLeft(), w.Story())
		}
	})
}
