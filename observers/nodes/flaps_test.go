package nodes_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
)

// flap loses node a for a while and has it return, as often as said, once in each
// period.
func flap(b *bench, times int, lost, period time.Duration) {
	for range times {
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(lost)
		b.Put(node("a", "1"))
		b.Pass(period - lost)
	}
}

// threeLosses are what is told of a node that begins to flap at midnight, once a
// minute.
var threeLosses = []string{
	"node.observed a 1 worker unreachable since 00:00:00", "node.observed a 1 worker",
	"node.observed a 1 worker unreachable since 00:01:00", "node.observed a 1 worker",
	"node.observed a 1 worker unreachable since 00:02:00 flapping",
}

func TestANodeThatFlapsForADayIsOneEventWithACountAfterTheThirdTime(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		flap(b, 24*60, 10*time.Second, time.Minute)
		b.Wrote(threeLosses...)
		b.Pass(nodes.FlapCalm - time.Minute)
		b.Wrote()
		b.Pass(11 * time.Second)
		b.Wrote("node.observed a 1 worker lost 1440 times")
	})
}

func TestTheLossOfANodeThatBeginsToFlapIsToldAtOnceAndItsReturnOnceItLasts(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		flap(b, 2, 10*time.Second, time.Minute)
		b.Paper.Take()
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Settle()
		b.Wrote("node.observed a 1 worker unreachable since 00:02:00 flapping")
		b.Put(node("a", "1"))
		b.Pass(nodes.FlapCalm - time.Second)
		b.Wrote()
		b.Pass(2 * time.Second)
		b.Wrote("node.observed a 1 worker lost 3 times")
		b.Pass(2 * time.Minute) // two of the losses are forgotten by then, not the third
		b.Pass(5 * time.Minute)
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Settle()
		b.Wrote("node.observed a 1 worker unreachable since 00:12:21")
	})
}

func TestALossOfANodeThatFlapsIsToldWithItsAgeOnceItHasLasted(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Settles = 2 * time.Minute
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Paper.Take()
		flap(b, 5, 10*time.Second, time.Minute)
		b.Wrote(threeLosses...)
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(2*time.Minute - time.Second)
		b.Wrote()
		b.Pass(2 * time.Second)
		b.Wrote("node.observed a 1 worker unreachable since 00:05:00 lost 6 times for 2m0s")
		// Back after that, it still flaps: that it is lost must not count from then on.
		b.Put(node("a", "1"))
		b.Settle()
		b.Wrote("node.observed a 1 worker unreachable since 00:05:00 flapping")
		b.Pass(nodes.FlapCalm)
		b.Wrote("node.observed a 1 worker lost 6 times")
	})
}

func TestWhatElseChangesOfANodeThatFlapsIsToldAtOnce(t *testing.T) {
	excluded := func(n *corev1.Node) { n.Labels = map[string]string{kube.LabelExclude: ""} }
	cordoned := func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		flap(b, 4, 10*time.Second, time.Minute)
		b.Wrote(threeLosses...)
		b.Put(node("a", "1", excluded))
		b.Settle()
		b.Wrote("node.observed a 1 worker unreachable since 00:02:00 excluded flapping")
		b.Put(node("a", "1", cordoned))
		b.Settle()
		b.Wrote("node.observed a 1 worker unreachable since 00:02:00 cordoned flapping")
		b.Put(node("a", "2"))
		b.Settle()
		b.Wrote("node.gone a 1 replaced by uid 2", "node.observed a 2 worker")
		b.Remove(node("a", "2"))
		b.Pass(time.Hour)
		b.Wrote("node.gone a 2 deleted")
	})
}

func TestANodeThatComesAndGoesSeldomIsToldEachTime(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		flap(b, 20, 4*time.Minute, 6*time.Minute)
		if got := len(b.Paper.Take()); got != 40 {
			b.Errorf("%d events, want two for each of 20 losses", got)
		}
	})
}

func TestTheTaintsOfOneLossAreOneLoss(t *testing.T) {
	half := func(at time.Time) func(*corev1.Node) {
		return func(n *corev1.Node) {
			unreachable(at)(n)
			n.Spec.Taints[0].Effect = corev1.TaintEffectNoSchedule
		}
	}
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		for range 2 {
			lost := time.Now()
			b.Put(node("a", "1", half(lost)))
			b.Pass(time.Second)
			b.Put(node("a", "1", unreachable(lost.Add(time.Second)), half(lost)))
			b.Pass(30 * time.Second)
			b.Put(node("a", "1", half(lost)))
			b.Pass(time.Second)
			b.Put(node("a", "1"))
			b.Pass(time.Minute)
		}
		if got := len(b.Paper.Take()); got != 8 {
			b.Errorf("%d events of two losses, want 8", got)
		}
	})
}

func TestANodeThatFlappedWhenEKCOWasKilledIsToldAsItIs(t *testing.T) {
	known := kube.NodeOf(node("a", "1", unreachable(time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC))))
	known.Facts.Flapping = true
	for name, now := range map[string]*corev1.Node{
		"node.observed a 1 worker":                            node("a", "1"),
		"node.observed a 1 worker unreachable since 23:00:00": node("a", "1", unreachable(known.Facts.Taints[0].TimeAdded)),
		"node.observed a 1 worker unreachable since 23:59:50": node("a", "1", unreachable(time.Date(1999, 12, 31, 23, 59, 50, 0, time.UTC))),
	} {
		watching(t, func(b *bench, _ *observers.Options) {
			b.KnownNodes = []kube.Node{known}
			b.Put(now)
		}, func(b *bench) { b.Wrote(name) })
	}
}

func TestANodeThatFlapsWhileTheJournalCannotBeWrittenIsToldAsItIsThen(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Paper.BreakWith(errors.Join(errors.New("disk full"), journal.ErrUnwritable))
		flap(b, 5, 10*time.Second, time.Minute)
		b.Paper.BreakWith(nil)
		b.Pass(2 * time.Second)
		b.Wrote() // it is reachable, as the journal has it
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Settle()
		b.Wrote("node.observed a 1 worker unreachable since 00:05:02 flapping")
	})
}

func TestANodeThatNoLongerFlapsIsNotComparedAgainAndAgain(t *testing.T) {
	source := &asked{}
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			source.Essential = b.Everything()[0].(observers.Essential)
			return []observers.Source{source}
		}
		b.Put(node("a", "1"))
	}, func(b *bench) {
		flap(b, 5, 10*time.Second, time.Minute)
		b.Pass(nodes.FlapCalm)
		before := source.times
		b.Pass(59 * time.Minute)
		if source.times > before {
			b.Errorf("asked %d times for what is due, when nothing can be", source.times-before)
		}
	})
}
