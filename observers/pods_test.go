package observers

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

func TestPodsAreWatchedOnUnknownNodesOnly(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), node("b", "2"))
		b.put(pod("x/on-a", "p1", "a"), pod("x/on-b", "p2", "b", terminating(time.Now())))
	}, func(b *bench) {
		b.paper.take()
		if calls := b.takeCalls(); count(calls, "list pods") != 0 {
			b.Fatalf("pods were listed while no node is unknown: %v", calls)
		}
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.called(map[string]int{"list pods": 1, "watch pods": 1})
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.called(map[string]int{})
		b.wrote()

		asked := time.Now()
		b.pass(3 * time.Second)
		b.put(pod("x/on-a", "p1", "a", terminating(asked)), pod("x/on-b", "p2", "b", terminating(asked)))
		b.settle()
		b.wrote("pod.terminating x/on-a p1 on a 1 ends 00:00:30")
		if lag := b.lags["pods"]; lag < 3*time.Second || lag > 4*time.Second {
			b.Errorf("lag is %s, want the 3s since the pod was asked to end", lag)
		}

		b.remove(pod("x/on-a", "p1", "a"))
		b.settle()
		b.wrote("pod.gone x/on-a p1 from a 1")
	})
}

func TestTheTimeThatAPodWasGivenIsWritten(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), pod("x/listed", "p", "a", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.put(pod("x/watched", "q", "a", terminating(time.Now())))
		b.settle()
		for _, batch := range b.paper.batches {
			for _, draft := range batch {
				if p, ok := draft.Payload.(journal.PodTerminating); ok && (p.GracePeriod == nil || *p.GracePeriod != journal.Duration(30*time.Second)) {
					b.Errorf("%s was given %v, want 30s", draft.Subject.Name, p.GracePeriod)
				}
			}
		}
		b.wrote("node.observed a 1 worker", "pod.terminating x/listed p on a 1 ends 00:00:30", "pod.terminating x/watched q on a 1 ends 00:00:30")
	})
}

func TestAChangedDeletionTimeIsWrittenAndOtherChangesAreNot(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), pod("x/p", "p", "a", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.wrote("node.observed a 1 worker", "pod.terminating x/p p on a 1 ends 00:00:30")
		same := pod("x/p", "p", "a", terminating(time.Now().Truncate(time.Second)))
		same.Status.Message = "another status"
		b.put(same)
		b.settle()
		b.wrote()
		b.put(pod("x/p", "p", "a", terminating(time.Now().Truncate(time.Second).Add(-20*time.Second))))
		b.settle()
		b.wrote("pod.terminating x/p p on a 1 ends 00:00:10")
	})
}

func TestPodsOfANodeThatIsNoLongerUnknownAreGone(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), pod("x/p", "p", "a", terminating(time.Now())), pod("x/q", "q", "a"))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.paper.take()
		b.SetUnknown(nil)
		b.settle()
		b.wrote("pod.gone x/p p from a 1")
		if got := b.open("pods"); got != 0 {
			b.Errorf("%d pod watches are open, want none", got)
		}
		b.put(pod("x/q", "q", "a", terminating(time.Now())))
		b.settle()
		b.wrote()
	})
}

func TestPodsOnANodeReplacedUnderItsNameAreReportedForTheNewOne(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), pod("x/p", "p", "a", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.paper.take()
		b.SetUnknown(map[string]string{"a": "2"})
		b.settle()
		b.wrote("pod.gone x/p p from a 1", "pod.terminating x/p p on a 2 ends 00:00:30")
	})
}

func TestOnlyTheDifferenceToTheKnownPodsIsWritten(t *testing.T) {
	watching(t, func(b *bench, o *Options) {
		ends := time.Now().Add(30 * time.Second)
		o.Known = Known{
			Nodes: []kube.Node{knownNode("a", "1"), knownNode("b", "2")},
			Pods: map[string][]journal.PodRef{
				"1": {
					{Namespace: "x", Name: "same", UID: "p1", DeletionTimestamp: ends},
					{Namespace: "x", Name: "ended", UID: "p2", DeletionTimestamp: ends},
				},
				"2": {{Namespace: "x", Name: "back", UID: "p3", DeletionTimestamp: ends}},
			},
		}
		b.put(node("a", "1"), node("b", "2"))
		b.put(pod("x/same", "p1", "a", terminating(time.Now())), pod("x/new", "p4", "a", terminating(time.Now())))
		b.failing["list pods"] = errRefused
	}, func(b *bench) {
		b.wrote()
		b.SetUnknown(map[string]string{"a": "1"})
		b.pass(time.Second)
		b.wrote("pod.gone x/back p3 from b 2") // what is on a is not known yet
		b.set(func() { clear(b.failing) })
		b.pass(5 * time.Second)
		b.wrote("pod.gone x/ended p2 from a 1", "pod.terminating x/new p4 on a 1 ends 00:00:30")
	})
}

func TestAForbiddenPodWatchIsPolled(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), node("b", "2"))
		b.forbidden["watch pods"] = true
	}, func(b *bench) {
		b.paper.take()
		b.SetUnknown(map[string]string{"a": "1", "b": "2"})
		b.settle()
		b.put(pod("x/p", "p", "a", terminating(time.Now())))
		b.pass(61 * time.Second)
		b.wrote("pod.terminating x/p p on a 1 ends 00:00:30")
		want := []string{`pods: watch is forbidden; polled every 1m0s instead (pods is forbidden: RBAC says no)`}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		if got := b.logged("polling instead"); got != 1 {
			b.Errorf("said %d times that EKCO polls, want once for all nodes", got)
		}
		b.set(func() { clear(b.forbidden) })
		b.pass(6 * time.Minute)
		if got := b.open("pods"); got != 2 {
			b.Errorf("%d pod watches after the permission came, want 2", got)
		}
	})
}

func TestManyUnknownNodesShareOneWatch(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			unknown := map[string]string{}
			watching(t, func(b *bench, _ *Options) {
				b.streams = streams
				for _, name := range named("node", 500) {
					unknown[name] = "uid-" + name
					b.put(pod("x/on-"+name, "pod-"+name, name, terminating(time.Now())), pod("y/on-"+name, "y-"+name, name))
				}
			}, func(b *bench) {
				few := map[string]string{}
				for _, name := range named("node", maxPodWatches) {
					few[name] = unknown[name]
				}
				b.SetUnknown(few)
				b.settle()
				b.expectWatches(maxPodWatches, maxPodWatches)

				b.SetUnknown(unknown)
				b.settle()
				b.expectWatches(1, 500-maxPodWatches)

				more := maps.Clone(unknown)
				b.put(pod("x/late", "late", "late-node", terminating(time.Now().Truncate(time.Second))))
				b.settle()
				b.wrote()
				more["late-node"] = "late-uid"
				b.SetUnknown(more)
				b.settle()
				b.wrote("pod.terminating x/late late on late-node late-uid ends 00:00:30")

				delete(more, "late-node")
				b.SetUnknown(more)
				b.settle()
				b.wrote("pod.gone x/late late from late-node late-uid")
				more["late-node"] = "late-uid"
				b.SetUnknown(more)
				b.settle()
				b.wrote("pod.terminating x/late late on late-node late-uid ends 00:00:30")

				delete(more, "late-node")
				b.SetUnknown(more)
				synctest.Wait()
				b.remove(pod("x/late", "late", "late-node"))
				synctest.Wait()
				more["late-node"] = "late-uid"
				b.SetUnknown(more)
				b.settle()
				b.wrote("pod.gone x/late late from late-node late-uid")
				delete(more, "late-node")

				for _, name := range named("node", 500)[maxPodWatches-1:] {
					delete(more, name)
				}
				b.SetUnknown(more)
				b.settle()
				b.expectWatches(1, 500-maxPodWatches+1)
				for _, name := range named("node", 500)[maxPodWatches/2:] {
					delete(more, name)
				}
				b.SetUnknown(more)
				b.settle()
				b.expectWatches(maxPodWatches/2, maxPodWatches-1-maxPodWatches/2)
				b.remove(pod("x/on-node-0001", "pod-node-0001", "node-0001"))
				b.settle()
				b.wrote("pod.gone x/on-node-0001 pod-node-0001 from node-0001 uid-node-0001")
			})
		})
	}
}

func TestPodsOfNodesThatAreNoLongerWatchedAreForgotten(t *testing.T) {
	many := map[string]string{}
	for _, name := range named("node", maxPodWatches+1) {
		many[name] = name
	}
	watching(t, func(b *bench, _ *Options) {
		b.put(pod("x/other", "other", "other-node", terminating(time.Now())))
	}, func(b *bench) {
		b.SetUnknown(many)
		b.settle()
		b.SetUnknown(nil)
		b.settle()
		b.set(func() { b.failing["list pods"] = errRefused })
		b.SetUnknown(map[string]string{"other-node": "u"})
		b.settle()
		b.wrote() // what was known before may have changed since
		b.set(func() { clear(b.failing) })
		b.pass(3 * time.Second)
		b.wrote("pod.terminating x/other other on other-node u ends 00:00:30")
	})
}

func TestAWatchThatWasStoppedHasNothingMoreToSay(t *testing.T) {
	out := newOutbox(Options{})
	sink := &podSink{out: out, node: "a"}
	out.change(func() { out.pods.watch(map[string]string{"a": "1"}) })
	sink.close()
	sink.seen(pod("x/p", "p", "a", terminating(time.Now())))
	if due := out.pods.due(); len(due.drafts) > 0 {
		t.Errorf("due is %q", line(due.drafts[0]))
	}
}

// expectWatches checks the number of open pod watches, and of facts written.
func (b *bench) expectWatches(watches, facts int) {
	b.Helper()
	got := fmt.Sprintf("%d watches, %d facts", b.open("pods"), len(b.paper.take()))
	if want := fmt.Sprintf("%d watches, %d facts", watches, facts); got != want {
		b.Fatalf("there are %s, want %s", got, want)
	}
}
