package observers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// watchingLamps runs a test in which nothing is observed but lamps.
func watchingLamps(t *testing.T, known map[string]lamp, prepare func(*bench), test func(*bench)) {
	t.Helper()
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return []observers.Source{watchedLamps(b, known)} }
		prepare(b)
	}, test)
}

func TestAThirdNounIsWatched(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			watchingLamps(t, nil, func(b *bench) {
				b.Streams = streams
				b.Put(lampObject("desk", "1", "yes"), lampObject("hall", "2", "no"), lampObject("chair", "3", ""))
			}, func(b *bench) {
				b.Wrote("node.observed desk 1 burns", "node.observed hall 2 dark")
				if !b.Synced() {
					b.Error("not synced, although nothing essential is observed")
				}
				changed := lampObject("desk", "1", "yes")
				changed.Labels = map[string]string{"dust": "much"}
				b.Put(changed)
				b.Settle()
				b.Wrote()
				b.Put(lampObject("desk", "1", "no"), lampObject("hall", "22", "no"))
				b.Settle()
				b.Wrote("node.observed desk 1 dark", "node.gone hall 2 replaced by uid 22", "node.observed hall 22 dark")
				if lag, ok := b.Lags["lamps"]; !ok || lag > time.Second {
					b.Errorf("lag is %s (%t)", lag, ok)
				}
				b.Put(lampObject("desk", "1", ""))
				b.Remove(lampObject("hall", "22", "no"))
				b.Settle()
				b.Wrote("node.gone desk 1 deleted", "node.gone hall 22 deleted")
			})
		})
	}
}

func TestOnlyTheDifferenceToWhatIsKnownOfAThirdNounIsWritten(t *testing.T) {
	known := map[string]lamp{"desk": {"1", true}, "hall": {"2", true}, "roof": {"3", true}, "shed": {"4", true}}
	watchingLamps(t, known, func(b *bench) {
		b.Put(lampObject("desk", "1", "yes"), lampObject("hall", "2", "no"), lampObject("roof", "33", "yes"))
	}, func(b *bench) {
		b.Wrote("node.observed hall 2 dark", "node.gone roof 3 replaced by uid 33", "node.observed roof 33 burns", "node.gone shed 4 absent at start")
	})
}

func TestAThirdNounThatMustNotBeWatchedIsPolledAndLookedAtWhenAsked(t *testing.T) {
	watchingLamps(t, nil, func(b *bench) {
		b.Forbidden["watch configmaps"] = true
	}, func(b *bench) {
		b.Put(lampObject("desk", "1", "yes"))
		b.Pass(61 * time.Second)
		b.Wrote("node.observed desk 1 burns")
		want := []string{`lamps: watch is forbidden; EKCO polls every 1m0s (configmaps is forbidden: RBAC says no)`}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		b.Put(lampObject("desk", "1", "no"))
		b.Look("chairs")
		b.Settle()
		b.Wrote()
		b.Look("lamps")
		b.Settle()
		b.Wrote("node.observed desk 1 dark")
	})
}

func TestWithoutAnythingEssentialThereIsNothingToWaitFor(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return nil }
	}, func(b *bench) {
		if err := b.WaitSynced(b.Context()); err != nil || !b.Synced() {
			b.Errorf("synced %t, %v", b.Synced(), err)
		}
	})
}

func TestAskingAWatchToLookCostsNothing(t *testing.T) {
	watchingLamps(t, nil, func(b *bench) { b.Put(lampObject("desk", "1", "yes")) }, func(b *bench) {
		b.TakeCalls()
		b.Look("lamps")
		b.Pass(time.Minute)
		b.Called(map[string]int{})
	})
}

// A batch holds what is told together.
func TestABatchTellsTheStoryInTheOrderOfTheSources(t *testing.T) {
	asked := &keeper{lamps: map[string]lamp{"moon": {"9", true}}}
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			moon := observers.Poll(observers.Polled[lamp]{Name: "moons", Noun: lamps(nil), Ask: asked.ask, OfAPI: true})
			return append([]observers.Source{moon, watchedLamps(b, nil)}, b.Everything()...)
		}
		b.Put(node("a", "1"), lampObject("desk", "2", "yes"))
	}, func(b *bench) {
		b.Paper.Take()
		b.Pass(50 * time.Minute)
		b.Paper.BreakWith(errors.New("disk full"))
		asked.change(func() { asked.err = observerstest.ErrRefused })
		b.Fall(observerstest.ErrRefused)
		b.Pass(10 * time.Second)
		b.Put(node("a", "1", unreachable(time.Now())), lampObject("desk", "2", "no"))
		asked.change(func() { asked.lamps["moon"], asked.err = lamp{"9", false}, nil })
		b.Rise()
		b.Pass(20 * time.Second)
		b.Paper.BreakWith(nil)
		b.Pass(2 * time.Second)
		b.Wrote(
			"api.lost the Kubernetes API is unavailable: connection refused",
			"node.observed moon 9 dark",
			"node.observed desk 2 dark",
			"node.observed a 1 worker unreachable since 00:50:10",
			"api.recovered lost at 00:50:00",
		)
	})
}
