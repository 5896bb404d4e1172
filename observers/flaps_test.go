package observers

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// flap loses node a for a while and has it return, as often as said, once in each
// period.
func (b *bench) flap(times int, lost, period time.Duration) {
	for range times {
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(lost)
		b.put(node("a", "1"))
		b.pass(period - lost)
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
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.flap(24*60, 10*time.Second, time.Minute)
		b.wrote(threeLosses...)
		b.pass(flapCalm - time.Minute)
		b.wrote()
		b.pass(11 * time.Second)
		b.wrote("node.observed a 1 worker lost 1440 times")
	})
}

func TestTheLossOfANodeThatBeginsToFlapIsToldAtOnceAndItsReturnOnceItLasts(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.flap(2, 10*time.Second, time.Minute)
		b.paper.take()
		b.put(node("a", "1", unreachable(time.Now())))
		b.settle()
		b.wrote("node.observed a 1 worker unreachable since 00:02:00 flapping")
		b.put(node("a", "1"))
		b.pass(flapCalm - time.Second)
		b.wrote()
		b.pass(2 * time.Second)
		b.wrote("node.observed a 1 worker lost 3 times")
		b.pass(2 * time.Minute) // two of the losses are forgotten by then, not the third
		b.pass(5 * time.Minute)
		b.put(node("a", "1", unreachable(time.Now())))
		b.settle()
		b.wrote("node.observed a 1 worker unreachable since 00:12:21")
	})
}

func TestALossOfANodeThatFlapsIsToldWithItsAgeOnceItHasLasted(t *testing.T) {
	watching(t, func(b *bench, o *Options) {
		o.Settles = 2 * time.Minute
		b.put(node("a", "1"))
	}, func(b *bench) {
		b.paper.take()
		b.flap(5, 10*time.Second, time.Minute)
		b.wrote(threeLosses...)
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(2*time.Minute - time.Second)
		b.wrote()
		b.pass(2 * time.Second)
		b.wrote("node.observed a 1 worker unreachable since 00:05:00 lost 6 times for 2m0s")
		// Back after that, it still flaps: that it is lost must not count from then on.
		b.put(node("a", "1"))
		b.settle()
		b.wrote("node.observed a 1 worker unreachable since 00:05:00 flapping")
		b.pass(flapCalm)
		b.wrote("node.observed a 1 worker lost 6 times")
	})
}

func TestWhatElseChangesOfANodeThatFlapsIsToldAtOnce(t *testing.T) {
	excluded := func(n *corev1.Node) { n.Labels = map[string]string{kube.LabelExclude: ""} }
	cordoned := func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.flap(4, 10*time.Second, time.Minute)
		b.wrote(threeLosses...)
		b.put(node("a", "1", excluded))
		b.settle()
		b.wrote("node.observed a 1 worker unreachable since 00:02:00 excluded flapping")
		b.put(node("a", "1", cordoned))
		b.settle()
		b.wrote("node.observed a 1 worker unreachable since 00:02:00 cordoned flapping")
		b.put(node("a", "2"))
		b.settle()
		b.wrote("node.gone a 1 replaced by uid 2", "node.observed a 2 worker")
		b.remove(node("a", "2"))
		b.pass(time.Hour)
		b.wrote("node.gone a 2 deleted")
	})
}

func TestANodeThatComesAndGoesSeldomIsToldEachTime(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.flap(20, 4*time.Minute, 6*time.Minute)
		if got := len(b.paper.take()); got != 40 {
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
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		for range 2 {
			lost := time.Now()
			b.put(node("a", "1", half(lost)))
			b.pass(time.Second)
			b.put(node("a", "1", unreachable(lost.Add(time.Second)), half(lost)))
			b.pass(30 * time.Second)
			b.put(node("a", "1", half(lost)))
			b.pass(time.Second)
			b.put(node("a", "1"))
			b.pass(time.Minute)
		}
		if got := len(b.paper.take()); got != 8 {
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
		watching(t, func(b *bench, o *Options) {
			o.Known.Nodes = []kube.Node{known}
			b.put(now)
		}, func(b *bench) { b.wrote(name) })
	}
}

func TestANodeThatFlapsWhileTheJournalCannotBeWrittenIsToldAsItIsThen(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.paper.breakWith(errors.Join(errors.New("disk full"), journal.ErrUnwritable))
		b.flap(5, 10*time.Second, time.Minute)
		b.paper.breakWith(nil)
		b.pass(2 * time.Second)
		b.wrote() // it is reachable, as the journal has it
		b.put(node("a", "1", unreachable(time.Now())))
		b.settle()
		b.wrote("node.observed a 1 worker unreachable since 00:05:02 flapping")
	})
}
