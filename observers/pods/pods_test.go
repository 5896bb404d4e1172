package pods_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
	"github.com/replicatedhq/ekco/observers/pods"
)

func TestPodsAreWatchedOnUnknownNodesOnly(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), node("b", "2"))
		b.Put(pod("x/on-a", "p1", "a"), pod("x/on-b", "p2", "b", terminating(time.Now())))
	}, func(b *bench) {
		b.Paper.Take()
		if calls := b.TakeCalls(); observerstest.Count(calls, "list pods") != 0 {
			b.Fatalf("pods were listed while no node is unknown: %v", calls)
		}
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Called(map[string]int{"list pods": 1, "watch pods": 1})
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Called(map[string]int{})
		b.Wrote()

		asked := time.Now()
		b.Pass(3 * time.Second)
		b.Put(pod("x/on-a", "p1", "a", terminating(asked)), pod("x/on-b", "p2", "b", terminating(asked)))
		b.Settle()
		b.Wrote("pod.terminating x/on-a p1 on a 1 ends 00:00:30")
		if lag := b.Lags["pods"]; lag < 3*time.Second || lag > 4*time.Second {
			b.Errorf("lag is %s, want the 3s since the pod was asked to end", lag)
		}

		b.Remove(pod("x/on-a", "p1", "a"))
		b.Settle()
		b.Wrote("pod.gone x/on-a p1 from a 1")
	})
}

func TestTheTimeThatAPodWasGivenIsWritten(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), pod("x/listed", "p", "a", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Put(pod("x/watched", "q", "a", terminating(time.Now())))
		b.Settle()
		for _, batch := range b.Paper.Batches {
			for _, draft := range batch {
				if p, ok := draft.Payload.(journal.PodTerminating); ok && (p.GracePeriod == nil || *p.GracePeriod != journal.Duration(30*time.Second)) {
					b.Errorf("%s was given %v, want 30s", draft.Subject.Name, p.GracePeriod)
				}
			}
		}
		b.Wrote("node.observed a 1 worker", "pod.terminating x/listed p on a 1 ends 00:00:30", "pod.terminating x/watched q on a 1 ends 00:00:30")
	})
}

func TestAChangedDeletionTimeIsWrittenAndOtherChangesAreNot(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), pod("x/p", "p", "a", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Wrote("node.observed a 1 worker", "pod.terminating x/p p on a 1 ends 00:00:30")
		same := pod("x/p", "p", "a", terminating(time.Now().Truncate(time.Second)))
		same.Status.Message = "another status"
		b.Put(same)
		b.Settle()
		b.Wrote()
		b.Put(pod("x/p", "p", "a", terminating(time.Now().Truncate(time.Second).Add(-20*time.Second))))
		b.Settle()
		b.Wrote("pod.terminating x/p p on a 1 ends 00:00:10")
	})
}

func TestPodsOfANodeThatIsNoLongerUnknownAreGone(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), pod("x/p", "p", "a", terminating(time.Now())), pod("x/q", "q", "a"))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Paper.Take()
		b.SetUnknown(nil)
		b.Settle()
		b.Wrote("pod.gone x/p p from a 1")
		if got := b.Open("pods"); got != 0 {
			b.Errorf("%d pod watches are open, want none", got)
		}
		b.Put(pod("x/q", "q", "a", terminating(time.Now())))
		b.Settle()
		b.Wrote()
	})
}

func TestPodsOnANodeReplacedUnderItsNameAreReportedForTheNewOne(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), pod("x/p", "p", "a", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Paper.Take()
		b.SetUnknown(map[string]string{"a": "2"})
		b.Settle()
		b.Wrote("pod.gone x/p p from a 1", "pod.terminating x/p p on a 2 ends 00:00:30")
	})
}

func TestOnlyTheDifferenceToTheKnownPodsIsWritten(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		ends := time.Now().Add(30 * time.Second)
		b.KnownNodes = []kube.Node{observerstest.KnownNode("a", "1"), observerstest.KnownNode("b", "2")}
		b.KnownPods = []pods.Known{
			{Node: "a", NodeUID: "1", Terminating: []journal.PodRef{
				{Namespace: "x", Name: "same", UID: "p1", DeletionTimestamp: ends},
				{Namespace: "x", Name: "ended", UID: "p2", DeletionTimestamp: ends},
			}},
			{Node: "b", NodeUID: "2", Terminating: []journal.PodRef{{Namespace: "x", Name: "back", UID: "p3", DeletionTimestamp: ends}}},
		}
		b.Put(node("a", "1"), node("b", "2"))
		b.Put(pod("x/same", "p1", "a", terminating(time.Now())), pod("x/new", "p4", "a", terminating(time.Now())))
		b.Failing["list pods"] = observerstest.ErrRefused
	}, func(b *bench) {
		b.Wrote()
		b.SetUnknown(map[string]string{"a": "1"})
		b.Pass(time.Second)
		b.Wrote("pod.gone x/back p3 from b 2") // what is on a is not known yet
		b.Set(func() { clear(b.Failing) })
		b.Pass(5 * time.Second)
		b.Wrote("pod.gone x/ended p2 from a 1", "pod.terminating x/new p4 on a 1 ends 00:00:30")
	})
}

func TestWhatHappenedOnManyNodesIsToldNodeByNode(t *testing.T) {
	var want []string
	watching(t, func(b *bench, _ *observers.Options) {
		for _, name := range observerstest.Named("node", 20) {
			b.KnownPods = append(b.KnownPods, pods.Known{Node: name, NodeUID: "u", Terminating: []journal.PodRef{
				{Namespace: "x", Name: "p", UID: "p-" + name}, {Namespace: "x", Name: "q", UID: "q-" + name},
			}})
			want = append(want, "pod.gone x/p p-"+name+" from "+name+" u", "pod.gone x/q q-"+name+" from "+name+" u")
		}
	}, func(b *bench) {
		b.SetUnknown(nil)
		b.Settle()
		b.Wrote(want...)
	})
}

func TestAForbiddenPodWatchIsPolled(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), node("b", "2"))
		b.Forbidden["watch pods"] = true
	}, func(b *bench) {
		b.Paper.Take()
		b.SetUnknown(map[string]string{"a": "1", "b": "2"})
		b.Settle()
		b.Put(pod("x/p", "p", "a", terminating(time.Now())))
		b.Pass(61 * time.Second)
		b.Wrote("pod.terminating x/p p on a 1 ends 00:00:30")
		want := []string{`pods: watch is forbidden; EKCO polls every 1m0s (pods is forbidden: RBAC says no)`}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		if got := b.Logged("polling instead"); got != 1 {
			b.Errorf("said %d times that EKCO polls, want once for all nodes", got)
		}
		b.Set(func() { clear(b.Forbidden) })
		b.Pass(6 * time.Minute)
		if got := b.Open("pods"); got != 2 {
			b.Errorf("%d pod watches after the permission came, want 2", got)
		}
	})
}

func TestPodsThatMustNotBeWatchedAreLookedAtWhenAsked(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Forbidden["watch pods"] = true
	}, func(b *bench) {
		b.Paper.Take()
		b.Look("pods") // nobody has said where yet
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Put(pod("x/p", "p", "a", terminating(time.Now())))
		b.Settle()
		b.Wrote()
		b.Look("pods")
		b.Settle()
		b.Wrote("pod.terminating x/p p on a 1 ends 00:00:30")
	})
}

func TestANodeIsLostWhenItIsUnreachableAndItsMachineFollowsThat(t *testing.T) {
	lost := &fsmnode.Node{Facts: journal.NodeFacts{Taints: []journal.Taint{{Key: journal.TaintUnreachable}}}}
	thing := func(name string, state journal.NodeState, data any) observers.Thing {
		return observers.Thing{Subject: journal.NodeSubject(name, "uid-"+name), State: string(state), Data: data}
	}
	other := thing("other", fsmnode.Unknown, lost)
	other.Subject.Kind = "Lamp"
	gone := thing("gone", fsmnode.Unknown, lost)
	gone.Gone = true
	got := pods.Lost(slices.Values([]observers.Thing{
		thing("unknown", fsmnode.Unknown, lost), thing("clearing", fsmnode.Clearing, lost), thing("cleared", fsmnode.Cleared, lost),
		thing("purging", fsmnode.Purging, lost), thing("back", fsmnode.Unknown, &fsmnode.Node{}), gone,
		thing("unnoticed", fsmnode.Healthy, lost), thing("purged", fsmnode.Purged, lost), thing("unseen", fsmnode.Unknown, nil), other,
	}))
	want := map[string]string{"unknown": "uid-unknown", "clearing": "uid-clearing", "cleared": "uid-cleared", "purging": "uid-purging"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}

func TestManyUnknownNodesShareOneWatch(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			unknown := map[string]string{}
			watching(t, func(b *bench, _ *observers.Options) {
				b.Streams = streams
				for _, name := range observerstest.Named("node", 500) {
					unknown[name] = "uid-" + name
					b.Put(pod("x/on-"+name, "pod-"+name, name, terminating(time.Now())), pod("y/on-"+name, "y-"+name, name))
				}
			}, func(b *bench) {
				few := map[string]string{}
				for _, name := range observerstest.Named("node", pods.MaxWatches) {
					few[name] = unknown[name]
				}
				b.SetUnknown(few)
				b.Settle()
				expectWatches(b, pods.MaxWatches, pods.MaxWatches)

				b.SetUnknown(unknown)
				b.Settle()
				expectWatches(b, 1, 500-pods.MaxWatches)

				more := maps.Clone(unknown)
				b.Put(pod("x/late", "late", "late-node", terminating(time.Now().Truncate(time.Second))))
				b.Settle()
				b.Wrote()
				more["late-node"] = "late-uid"
				b.SetUnknown(more)
				b.Settle()
				b.Wrote("pod.terminating x/late late on late-node late-uid ends 00:00:30")

				delete(more, "late-node")
				b.SetUnknown(more)
				b.Settle()
				b.Wrote("pod.gone x/late late from late-node late-uid")
				more["late-node"] = "late-uid"
				b.SetUnknown(more)
				b.Settle()
				b.Wrote("pod.terminating x/late late on late-node late-uid ends 00:00:30")

				delete(more, "late-node")
				b.SetUnknown(more)
				synctest.Wait()
				b.Remove(pod("x/late", "late", "late-node"))
				synctest.Wait()
				more["late-node"] = "late-uid"
				b.SetUnknown(more)
				b.Settle()
				b.Wrote("pod.gone x/late late from late-node late-uid")
				delete(more, "late-node")

				for _, name := range observerstest.Named("node", 500)[pods.MaxWatches-1:] {
					delete(more, name)
				}
				b.SetUnknown(more)
				b.Settle()
				expectWatches(b, 1, 500-pods.MaxWatches+1)
				for _, name := range observerstest.Named("node", 500)[pods.MaxWatches/2:] {
					delete(more, name)
				}
				b.SetUnknown(more)
				b.Settle()
				expectWatches(b, pods.MaxWatches/2, pods.MaxWatches-1-pods.MaxWatches/2)
				b.Remove(pod("x/on-node-0001", "pod-node-0001", "node-0001"))
				b.Settle()
				b.Wrote("pod.gone x/on-node-0001 pod-node-0001 from node-0001 uid-node-0001")
			})
		})
	}
}

func TestPodsOfNodesThatAreNoLongerWatchedAreForgotten(t *testing.T) {
	many := map[string]string{}
	for _, name := range observerstest.Named("node", pods.MaxWatches+1) {
		many[name] = name
	}
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(pod("x/other", "other", "other-node", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(many)
		b.Settle()
		b.SetUnknown(nil)
		b.Settle()
		b.Set(func() { b.Failing["list pods"] = observerstest.ErrRefused })
		b.SetUnknown(map[string]string{"other-node": "u"})
		b.Settle()
		b.Wrote() // what was known before may have changed since
		b.Set(func() { clear(b.Failing) })
		b.Pass(3 * time.Second)
		b.Wrote("pod.terminating x/other other on other-node u ends 00:00:30")
	})
}

// expectWatches checks the number of open pod watches, and of facts written.
func expectWatches(b *bench, watches, facts int) {
	b.Helper()
	got := fmt.Sprintf("%d watches, %d facts", b.Open("pods"), len(b.Paper.Take()))
	if want := fmt.Sprintf("%d watches, %d facts", watches, facts); got != want {
		b.Fatalf("there are %s, want %s", got, want)
	}
}
