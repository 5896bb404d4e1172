package nodes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestNodesOfTheFirstListAreWritten(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(b *bench, _ *observers.Options) {
				b.Streams = streams
				b.Put(node("a", "1"), node("b", "2", func(n *corev1.Node) {
					n.Labels = map[string]string{kube.LabelMaster: ""}
				}))
			}, func(b *bench) {
				b.Wrote("node.observed a 1 worker", "node.observed b 2 primary")
				if !b.Synced() {
					b.Error("not synced after the first list was written")
				}
				b.Put(node("c", "3"))
				b.Settle()
				b.Wrote("node.observed c 3 worker")
				if len(b.Paper.Batches) != 2 {
					b.Errorf("%d batches, want one for the list and one for the new node", len(b.Paper.Batches))
				}
			})
		})
	}
}

func TestAHeartbeatIsNotAFact(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Wrote("node.observed a 1 worker")
		for range 100 {
			b.Put(node("a", "1", heartbeat))
			b.Pass(10 * time.Second)
		}
		b.Wrote()
		if b.Paper.Tries != 1 {
			b.Errorf("%d calls of Record, want only the first", b.Paper.Tries)
		}
	})
}

func TestAChangedTaintIsWrittenOnceWithItsLag(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Wrote("node.observed a 1 worker")
		lost := time.Now()
		b.Pass(2 * time.Second)
		b.Put(node("a", "1", unreachable(lost)))
		b.Pass(time.Minute)
		b.Wrote("node.observed a 1 worker unreachable since 00:00:00")
		if lag := b.Lags["nodes"]; lag < 2*time.Second || lag > 2100*time.Millisecond {
			b.Errorf("lag is %s, want a little over the 2s since the taint", lag)
		}
	})
}

func TestADeletedNodeIsGone(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1"), node("b", "2")) }, func(b *bench) {
		b.Paper.Take()
		b.Remove(node("a", "1"))
		b.Settle()
		b.Wrote("node.gone a 1 deleted")
	})
}

func TestANodeOfTheSameNameIsAnotherNode(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Remove(node("a", "1"))
		b.Put(node("a", "2"))
		b.Settle()
		b.Wrote("node.gone a 1 replaced by uid 2", "node.observed a 2 worker")
	})
}

func TestOnlyWhatHappenedWhileEKCOWasAwayIsWrittenAtStart(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.KnownNodes = []kube.Node{
			observerstest.KnownNode("deleted", "1"), observerstest.KnownNode("lost", "2"), observerstest.KnownNode("replaced", "3"), observerstest.KnownNode("same", "4"),
		}
		b.Put(node("lost", "2", unreachable(time.Now())), node("replaced", "33"), node("same", "4"), node("young", "5"))
	}, func(b *bench) {
		b.Wrote(
			"node.observed lost 2 worker unreachable since 00:00:00",
			"node.gone replaced 3 replaced by uid 33",
			"node.observed replaced 33 worker",
			"node.observed young 5 worker",
			"node.gone deleted 1 absent at start",
		)
		if _, ok := b.Lags["nodes"]; ok {
			b.Error("a difference found by a list counts as lag")
		}
	})
}

func TestAClusterWithoutNodesIsSynced(t *testing.T) {
	watching(t, nil, func(b *bench) {
		if !b.Synced() {
			b.Error("not synced, although the journal is up to date")
		}
	})
}

func TestNothingIsWrittenAtStartWhenNothingHappened(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.KnownNodes = []kube.Node{observerstest.KnownNode("a", "1")}
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Wrote()
		if !b.Synced() {
			b.Error("not synced, although the journal is up to date")
		}
	})
}

func TestADeletionThatTheWatchMissedIsFoundByTheNextList(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1"), node("b", "2"), node("c", "3")) }, func(b *bench) {
		b.Paper.Take()
		b.Fall(observerstest.ErrRefused)
		b.Pass(time.Second)
		b.Remove(node("a", "1"), node("b", "2"))
		b.Put(node("b", "22"))
		b.Forget()
		b.Rise()
		b.Pass(3 * time.Second)
		b.Wrote("node.gone b 2 replaced by uid 22", "node.observed b 22 worker", "node.gone a 1 deleted")
	})
}

// A list as of a version that was seen before, asked for in pages, is exactly
// that old list.
func TestNoListIsAsOfAnOldVersion(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Forbidden["watch nodes"] = true
	}, func(b *bench) {
		b.Pass(2*time.Minute + 30*time.Second)
		if diff := cmp.Diff([]string{"", "", ""}, b.AsOf); diff != "" {
			b.Errorf("versions asked for by the first list and two polls (-want +got):\n%s", diff)
		}
	})
}

func TestALateWordOfAnOldNodesEndSaysNothingOfTheNewOne(t *testing.T) {
	source := nodes.New(nodes.Options{})
	sink := source.(observers.Sink)
	sink.All([]runtime.Object{node("a", "2")})
	source.Due(time.Now()).Written()
	sink.Gone(node("a", "1"))
	if due := source.Due(time.Now()); len(due.Drafts) > 0 {
		t.Errorf("due is %q", observerstest.Line(due.Drafts[0]))
	}
}

// asked is a source that counts how often it is asked for what is due.
type asked struct {
	observers.Essential
	times int
}

func (a *asked) Due(at time.Time) observers.Batch {
	a.times++
	return a.Essential.Due(at)
}

func TestAHeartbeatDoesNotEvenWakeTheWriter(t *testing.T) {
	source := &asked{}
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			source.Essential = b.Everything()[0].(observers.Essential)
			return []observers.Source{source}
		}
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Wrote("node.observed a 1 worker")
		before := source.times
		b.Put(node("a", "1", heartbeat))
		b.Settle()
		if source.times > before {
			b.Error("a heartbeat woke the writer")
		}
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Settle()
		if source.times != before+1 {
			b.Error("a change did not wake the writer once")
		}
	})
}

func TestABrokenWatchGoesOnWithoutANewList(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Pass(10 * time.Minute)
		b.TakeCalls()
		b.BreakWatches()
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(3 * time.Second)
		b.Wrote("node.observed a 1 worker unreachable since 00:10:00")
		b.Called(map[string]int{"watch nodes": 1})
	})
}

func TestAtRestNothingIsAsked(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.TakeCalls()
		b.Pass(24 * time.Hour)
		b.Called(map[string]int{})
		if b.Probes != 0 {
			b.Errorf("%d probes at rest", b.Probes)
		}
	})
}

func TestAThousandNodesLostAtOnceAreWrittenInFewBatches(t *testing.T) {
	names := observerstest.Named("node", 1000)
	watching(t, func(b *bench, _ *observers.Options) {
		for _, name := range names {
			b.Put(node(name, "uid-"+name))
		}
	}, func(b *bench) {
		if got := len(b.Paper.Batches); got != 1 {
			b.Errorf("the first list took %d batches, want 1", got)
		}
		b.Paper.Take()
		for _, name := range names {
			b.Put(node(name, "uid-"+name, unreachable(time.Now())))
		}
		b.Pass(time.Second)
		if got := len(b.Paper.Take()); got != 1000 {
			b.Errorf("%d facts, want 1000", got)
		}
		if got := len(b.Paper.Batches) - 1; got > 3 {
			b.Errorf("%d batches, want at most 3", got)
		}
	})
}

// TestWhoDependsOnNodesIsCalledWhenTheirFactsChange, and not with each heartbeat.
func TestWhoDependsOnNodesIsCalledWhenTheirFactsChange(t *testing.T) {
	calls := 0
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Sources = func() []observers.Source {
			return []observers.Source{nodes.New(nodes.Options{Nodes: b.Nodes(), Recorded: func() { calls++ }})}
		}
	}, func(b *bench) {
		for i, step := range []struct {
			change func()
			calls  int
		}{
			{func() {}, 1},
			{func() { b.Put(node("a", "1", func(n *corev1.Node) { n.Annotations = map[string]string{"x": "y"} })) }, 0},
			{func() { b.Put(node("b", "2")) }, 1},
			{func() { b.Put(node("b", "2", tainted)) }, 1},
			{func() { b.Remove(node("b", "2")) }, 1},
		} {
			if i > 0 {
				calls = 0
			}
			step.change()
			b.Settle()
			if calls != step.calls {
				t.Errorf("step %d: called %d times, want %d", i, calls, step.calls)
			}
		}
	})
}
