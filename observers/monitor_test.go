package observers_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestAnOutageIsWrittenWhenItBeginsAndWhenAllIsReadAnew(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Pass(time.Minute - 100*time.Millisecond)
		b.Fall(observerstest.ErrRefused)
		b.Pass(4 * time.Second)
		b.Wrote()
		b.Pass(3 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused")
		if b.Synced() {
			b.Error("synced during an outage")
		}
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Rise()
		b.Pass(7 * time.Second)
		b.Wrote(
			"node.observed a 1 worker unreachable since 00:01:07",
			"api.recovered lost at 00:01:00",
		)
		if !b.Synced() {
			b.Error("not synced after the outage")
		}
	})
}

func TestAShortFailureIsNoOutage(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Fall(observerstest.ErrRefused)
		b.Pass(3 * time.Second)
		b.Rise()
		b.Pass(time.Minute)
		b.Wrote()
	})
}

func TestALongOutageCausesNoStorm(t *testing.T) {
	unknown := map[string]string{}
	watching(t, func(b *bench, _ *observers.Options) {
		for _, name := range observerstest.Named("node", 40) {
			b.Put(node(name, name))
			unknown[name] = name
		}
	}, func(b *bench) {
		b.SetUnknown(unknown)
		b.Settle()
		b.Paper.Take()
		b.Fall(observerstest.ErrRefused)
		b.Pass(time.Minute)
		b.TakeCalls()
		b.Set(func() { b.Probes = 0 })
		b.Pass(time.Hour)
		if b.Probes > 730 {
			b.Errorf("%d probes in an hour, want one each 5 s at most", b.Probes)
		}
		// 41 feeds, each at most every 15 s on average a list.
		if calls := len(b.TakeCalls()); calls > 41*60*60/15 {
			b.Errorf("%d calls in an hour of outage", calls)
		}
		b.Rise()
		b.Pass(6 * time.Second)
		b.Wrote(
			"api.lost the Kubernetes API is unavailable: connection refused",
			"api.recovered lost at 00:00:00",
		)
	})
}

func TestAnOutageAtStartIsWritten(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Down = observerstest.ErrRefused
	}, func(b *bench) {
		b.Pass(10 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if err := b.WaitSynced(ctx); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("WaitSynced during an outage at start: %v, want the end of ctx", err)
		}
		b.Rise()
		if err := b.WaitSynced(b.Context()); err != nil {
			b.Error(err)
		}
		b.Pass(2 * time.Second)
		b.Wrote("node.observed a 1 worker", "api.recovered lost at 00:00:00")
	})
}

func TestASuspicionIsCheckedAndEndsWithAnAnswer(t *testing.T) {
	watching(t, nil, func(b *bench) {
		b.ReportFailedCall(errors.New("no such pod"))
		b.Settle()
		if b.Probes != 0 {
			t.Error("probed for an error that says nothing about the API server")
		}
		b.ReportFailedCall(observerstest.ErrRefused)
		b.Pass(time.Hour)
		b.Wrote()
		if b.Probes != 1 {
			t.Errorf("%d probes for a suspicion that the first one ended", b.Probes)
		}
	})
}

func TestManySuspicionsCauseNoStorm(t *testing.T) {
	watching(t, nil, func(b *bench) {
		for range 600 {
			b.ReportFailedCall(observerstest.ErrRefused)
			b.Settle()
		}
		if b.Probes > 61 {
			t.Errorf("%d probes in a minute of suspicions, want one a second at most", b.Probes)
		}
	})
}

func TestAServerThatHangsWithItsWatchesOpenIsAnOutage(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Set(func() { b.Down = observerstest.ErrRefused }) // the open watch notices nothing
		b.ReportFailedCall(observerstest.ErrRefused)
		b.Pass(10 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused")
		b.TakeCalls()
		b.Rise()
		b.Pass(6 * time.Second)
		b.Wrote("api.recovered lost at 00:00:00")
		if calls := b.TakeCalls(); observerstest.Count(calls, "list nodes") != 1 {
			b.Errorf("calls are %v, want the nodes read again", calls)
		}
	})
}

func TestAnOutageOfTheNodesAloneEndsWhenAllIsReadAnew(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.SetUnknown(map[string]string{"a": "1"})
		b.Settle()
		b.Paper.Take()
		b.Set(func() {
			b.Failing["list nodes"], b.Failing["watch nodes"] = observerstest.ErrRefused, observerstest.ErrRefused
		})
		b.BreakWatches()
		b.Pass(10 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused")
		b.Set(func() { clear(b.Failing) })
		b.Pass(40 * time.Second)
		b.Wrote("api.recovered lost at 00:00:00")
	})
}

func TestStoppingDoesNotWaitForAnAPIServerThatIsAway(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Streams = true
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Fall(fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED))
		for range 20 {
			b.Pass(3 * time.Second)
		}
		began := time.Now()
		b.Stop()
		if took := time.Since(began); took > 0 {
			b.Errorf("stopping took %s", took)
		}
	})
}

func TestAWatchThatBreaksOffLeadsToAProbe(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Pass(time.Hour)
		b.Paper.Take()
		b.BreakStreams()
		b.Pass(3 * time.Second)
		b.Wrote()
		if b.Probes != 1 {
			b.Errorf("%d probes after a watch broke off, want 1", b.Probes)
		}
	})
}

func TestPodsThatCannotBeReadAreNoOutage(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Failing["list pods"] = observerstest.ErrRefused
	}, func(b *bench) {
		b.Paper.Take()
		b.SetUnknown(map[string]string{"a": "1"})
		b.Pass(5 * time.Minute)
		b.Wrote()
		if !b.Synced() {
			b.Error("not synced, although the nodes are")
		}
		b.Fall(observerstest.ErrRefused)
		b.Pass(10 * time.Second)
		b.Rise()
		b.Pass(40 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused", "api.recovered lost at 00:05:00")
		b.Set(func() { b.Probes = 0 })
		b.Pass(time.Hour)
		if b.Probes > 130 {
			b.Errorf("%d probes in an hour in which only the pods fail", b.Probes)
		}
	})
}
