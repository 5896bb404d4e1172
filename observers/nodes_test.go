package observers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

func TestNodesOfTheFirstListAreWritten(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(b *bench, _ *Options) {
				b.streams = streams
				b.put(node("a", "1"), node("b", "2", func(n *corev1.Node) {
					n.Labels = map[string]string{kube.LabelMaster: ""}
				}))
			}, func(b *bench) {
				b.wrote("node.observed a 1 worker", "node.observed b 2 primary")
				if !b.Synced() {
					b.Error("not synced after the first list was written")
				}
				b.put(node("c", "3"))
				b.settle()
				b.wrote("node.observed c 3 worker")
				if len(b.paper.batches) != 2 {
					b.Errorf("%d batches, want one for the list and one for the new node", len(b.paper.batches))
				}
			})
		})
	}
}

func TestAHeartbeatIsNotAFact(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.wrote("node.observed a 1 worker")
		for range 100 {
			b.put(node("a", "1", heartbeat))
			b.pass(10 * time.Second)
		}
		b.wrote()
		if b.paper.tries != 1 {
			b.Errorf("%d calls of Record, want only the first", b.paper.tries)
		}
	})
}

func TestAChangedTaintIsWrittenOnceWithItsLag(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.wrote("node.observed a 1 worker")
		lost := time.Now()
		b.pass(2 * time.Second)
		b.put(node("a", "1", unreachable(lost)))
		b.pass(time.Minute)
		b.wrote("node.observed a 1 worker unreachable since 00:00:00")
		if lag := b.lags["nodes"]; lag < 2*time.Second || lag > 2100*time.Millisecond {
			b.Errorf("lag is %s, want a little over the 2s since the taint", lag)
		}
	})
}

func TestADeletedNodeIsGone(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1"), node("b", "2")) }, func(b *bench) {
		b.paper.take()
		b.remove(node("a", "1"))
		b.settle()
		b.wrote("node.gone a 1 deleted")
	})
}

func TestANodeOfTheSameNameIsAnotherNode(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.remove(node("a", "1"))
		b.put(node("a", "2"))
		b.settle()
		b.wrote("node.gone a 1 replaced by uid 2", "node.observed a 2 worker")
	})
}

func TestOnlyWhatHappenedWhileEKCOWasAwayIsWrittenAtStart(t *testing.T) {
	watching(t, func(b *bench, o *Options) {
		o.Known.Nodes = []kube.Node{
			knownNode("deleted", "1"), knownNode("lost", "2"), knownNode("replaced", "3"), knownNode("same", "4"),
		}
		b.put(node("lost", "2", unreachable(time.Now())), node("replaced", "33"), node("same", "4"), node("young", "5"))
	}, func(b *bench) {
		b.wrote(
			"node.observed lost 2 worker unreachable since 00:00:00",
			"node.gone replaced 3 replaced by uid 33",
			"node.observed replaced 33 worker",
			"node.observed young 5 worker",
			"node.gone deleted 1 absent at start",
		)
		if _, ok := b.lags["nodes"]; ok {
			b.Error("a difference found by a list counts as lag")
		}
	})
}

func TestNothingIsWrittenAtStartWhenNothingHappened(t *testing.T) {
	watching(t, func(b *bench, o *Options) {
		o.Known.Nodes = []kube.Node{knownNode("a", "1")}
		b.put(node("a", "1"))
	}, func(b *bench) {
		b.wrote()
		if !b.Synced() {
			b.Error("not synced, although the journal is up to date")
		}
	})
}

func TestADeletionThatTheWatchMissedIsFoundByTheNextList(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1"), node("b", "2"), node("c", "3")) }, func(b *bench) {
		b.paper.take()
		b.fall(errRefused)
		b.pass(time.Second)
		b.remove(node("a", "1"), node("b", "2"))
		b.put(node("b", "22"))
		b.forget()
		b.rise()
		b.pass(3 * time.Second)
		b.wrote("node.gone b 2 replaced by uid 22", "node.observed b 22 worker", "node.gone a 1 deleted")
	})
}

// A list as of a version that was seen before, asked for in pages, is exactly
// that old list.
func TestNoListIsAsOfAnOldVersion(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"))
		b.forbidden["watch nodes"] = true
	}, func(b *bench) {
		b.pass(2*time.Minute + 30*time.Second)
		if diff := cmp.Diff([]string{"", "", ""}, b.asOf); diff != "" {
			b.Errorf("versions asked for by the first list and two polls (-want +got):\n%s", diff)
		}
	})
}

func TestALateWordOfAnOldNodesEndSaysNothingOfTheNewOne(t *testing.T) {
	facts := newNodeFacts(nil, 0)
	facts.replace([]kube.Node{knownNode("a", "2")})
	facts.written(facts.due())
	facts.lose("a", "1")
	if due := facts.due(); len(due.drafts) > 0 {
		t.Errorf("due is %q", line(due.drafts[0]))
	}
}

func TestABrokenWatchGoesOnWithoutANewList(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.pass(10 * time.Minute)
		b.takeCalls()
		b.breakWatches()
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(3 * time.Second)
		b.wrote("node.observed a 1 worker unreachable since 00:10:00")
		b.called(map[string]int{"watch nodes": 1})
	})
}

func TestAtRestNothingIsAsked(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.takeCalls()
		b.pass(24 * time.Hour)
		b.called(map[string]int{})
		if b.probes != 0 {
			b.Errorf("%d probes at rest", b.probes)
		}
	})
}

func TestAThousandNodesLostAtOnceAreWrittenInFewBatches(t *testing.T) {
	names := named("node", 1000)
	watching(t, func(b *bench, _ *Options) {
		for _, name := range names {
			b.put(node(name, "uid-"+name))
		}
	}, func(b *bench) {
		if got := len(b.paper.batches); got != 1 {
			b.Errorf("the first list took %d batches, want 1", got)
		}
		b.paper.take()
		for _, name := range names {
			b.put(node(name, "uid-"+name, unreachable(time.Now())))
		}
		b.pass(time.Second)
		if got := len(b.paper.take()); got != 1000 {
			b.Errorf("%d facts, want 1000", got)
		}
		if got := len(b.paper.batches) - 1; got > 3 {
			b.Errorf("%d batches, want at most 3", got)
		}
	})
}
