package observers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

func TestAnOutageIsWrittenWhenItBeginsAndWhenAllIsReadAnew(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.pass(time.Minute - 100*time.Millisecond)
		b.fall(errRefused)
		b.pass(4 * time.Second)
		b.wrote()
		b.pass(3 * time.Second)
		b.wrote("api.lost the Kubernetes API is unavailable: connection refused")
		if b.Synced() {
			b.Error("synced during an outage")
		}
		b.put(node("a", "1", unreachable(time.Now())))
		b.rise()
		b.pass(7 * time.Second)
		b.wrote(
			"node.observed a 1 worker unreachable since 00:01:07",
			"api.recovered lost at 00:01:00",
		)
		if !b.Synced() {
			b.Error("not synced after the outage")
		}
	})
}

func TestAShortFailureIsNoOutage(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.fall(errRefused)
		b.pass(3 * time.Second)
		b.rise()
		b.pass(time.Minute)
		b.wrote()
	})
}

func TestALongOutageCausesNoStorm(t *testing.T) {
	unknown := map[string]string{}
	watching(t, func(b *bench, _ *Options) {
		for _, name := range named("node", 40) {
			b.put(node(name, name))
			unknown[name] = name
		}
	}, func(b *bench) {
		b.SetUnknown(unknown)
		b.settle()
		b.paper.take()
		b.fall(errRefused)
		b.pass(time.Minute)
		b.takeCalls()
		b.set(func() { b.probes = 0 })
		b.pass(time.Hour)
		if b.probes > 730 {
			b.Errorf("%d probes in an hour, want one each 5 s at most", b.probes)
		}
		// 41 feeds, each at most every 15 s on average a list.
		if calls := len(b.takeCalls()); calls > 41*60*60/15 {
			b.Errorf("%d calls in an hour of outage", calls)
		}
		b.rise()
		b.pass(6 * time.Second)
		b.wrote(
			"api.lost the Kubernetes API is unavailable: connection refused",
			"api.recovered lost at 00:00:00",
		)
	})
}

func TestAnOutageAtStartIsWritten(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"))
		b.down = errRefused
	}, func(b *bench) {
		b.pass(10 * time.Second)
		b.wrote("api.lost the Kubernetes API is unavailable: connection refused")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if err := b.WaitSynced(ctx); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("WaitSynced during an outage at start: %v, want the end of ctx", err)
		}
		b.rise()
		if err := b.WaitSynced(b.Context()); err != nil {
			b.Error(err)
		}
		b.pass(2 * time.Second)
		b.wrote("node.observed a 1 worker", "api.recovered lost at 00:00:00")
	})
}

func TestASuspicionIsCheckedAndEndsWithAnAnswer(t *testing.T) {
	watching(t, nil, func(b *bench) {
		b.Suspect(errors.New("no such pod"))
		b.settle()
		if b.probes != 0 {
			t.Error("probed for an error that says nothing about the API server")
		}
		b.Suspect(errRefused)
		b.pass(time.Hour)
		b.wrote()
		if b.probes != 1 {
			t.Errorf("%d probes for a suspicion that the first one ended", b.probes)
		}
	})
}

func TestManySuspicionsCauseNoStorm(t *testing.T) {
	watching(t, nil, func(b *bench) {
		for range 600 {
			b.Suspect(errRefused)
			b.settle()
		}
		if b.probes > 61 {
			t.Errorf("%d probes in a minute of suspicions, want one a second at most", b.probes)
		}
	})
}

func TestAServerThatHangsWithItsWatchesOpenIsAnOutage(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.set(func() { b.down = errRefused }) // the open watch notices nothing
		b.Suspect(errRefused)
		b.pass(10 * time.Second)
		b.wrote("api.lost the Kubernetes API is unavailable: connection refused")
		b.takeCalls()
		b.rise()
		b.pass(6 * time.Second)
		b.wrote("api.recovered lost at 00:00:00")
		if calls := b.takeCalls(); count(calls, "list nodes") != 1 {
			b.Errorf("calls are %v, want the nodes read anew", calls)
		}
	})
}

func TestAnOutageOfTheNodesAloneEndsWhenAllIsReadAnew(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.settle()
		b.paper.take()
		b.set(func() { b.failing["list nodes"], b.failing["watch nodes"] = errRefused, errRefused })
		b.breakWatches()
		b.pass(10 * time.Second)
		b.wrote("api.lost the Kubernetes API is unavailable: connection refused")
		b.set(func() { clear(b.failing) })
		b.pass(40 * time.Second)
		b.wrote("api.recovered lost at 00:00:00")
	})
}

func TestStoppingDoesNotWaitForAnAPIServerThatIsAway(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.streams = true
		b.put(node("a", "1"))
	}, func(b *bench) {
		b.fall(fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED))
		for range 20 {
			b.pass(3 * time.Second)
		}
		began := time.Now()
		b.Stop()
		if took := time.Since(began); took > 0 {
			b.Errorf("stopping took %s", took)
		}
	})
}

func TestAWatchThatBreaksOffLeadsToAProbe(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.pass(time.Hour)
		b.paper.take()
		b.breakStreams()
		b.pass(3 * time.Second)
		b.wrote()
		if b.probes != 1 {
			b.Errorf("%d probes after a watch broke off, want 1", b.probes)
		}
	})
}

func TestPodsThatCannotBeReadAreNoOutage(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"))
		b.failing["list pods"] = errRefused
	}, func(b *bench) {
		b.paper.take()
		b.SetUnknown(map[string]string{"a": "1"})
		b.pass(5 * time.Minute)
		b.wrote()
		if !b.Synced() {
			b.Error("not synced, although the nodes are")
		}
		b.fall(errRefused)
		b.pass(10 * time.Second)
		b.rise()
		b.pass(40 * time.Second)
		b.wrote("api.lost the Kubernetes API is unavailable: connection refused", "api.recovered lost at 00:05:00")
		b.set(func() { b.probes = 0 })
		b.pass(time.Hour)
		if b.probes > 130 {
			b.Errorf("%d probes in an hour in which only the pods fail", b.probes)
		}
	})
}
