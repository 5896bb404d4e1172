package observers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestAForbiddenWatchIsPolledUntilItIsPermitted(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(b *bench, _ *observers.Options) {
				b.Streams = streams
				b.Put(node("a", "1"))
				b.Forbidden["watch nodes"] = true
			}, func(b *bench) {
				b.Wrote("node.observed a 1 worker")
				if !b.Synced() {
					b.Error("not synced by polling")
				}
				want := []string{`nodes: watch is forbidden; EKCO polls every 1m0s (nodes is forbidden: RBAC says no)`}
				if diff := cmp.Diff(want, b.Absent()); diff != "" {
					b.Errorf("Absent (-want +got):\n%s", diff)
				}
				b.TakeCalls()

				b.Put(node("a", "1", unreachable(time.Now())))
				b.Pass(30 * time.Second)
				b.Wrote()
				b.Pass(31 * time.Second)
				b.Wrote("node.observed a 1 worker unreachable since 00:00:00")
				b.Pass(3 * time.Minute)
				b.Called(map[string]int{"list nodes": 4})
				b.Pass(3 * time.Minute)
				if got := b.TakeCalls(); observerstest.Count(got, "watch nodes") != 1 {
					b.Errorf("calls after five minutes are %v, want one try to watch", got)
				}
				if got := b.Logged("polling instead"); got != 1 {
					b.Errorf("said %d times that EKCO polls, want once:\n%s", got, b.Said)
				}

				b.Set(func() { b.Forbidden["watch nodes"] = false })
				b.Pass(6 * time.Minute)
				if got := b.Open("nodes"); got != 1 {
					b.Fatalf("%d watches after the permission came, want 1", got)
				}
				if absent := b.Absent(); len(absent) > 0 {
					b.Errorf("Absent is %q while all is watched", absent)
				}
				b.Put(node("b", "2"))
				b.Settle()
				b.Wrote("node.observed b 2 worker")
			})
		})
	}
}

func TestNodesThatMayNotBeListedAreQuietlyAwaited(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Forbidden["watch nodes"] = true
		b.Forbidden["list nodes"] = true
	}, func(b *bench) {
		b.Pass(10 * time.Minute)
		b.Wrote()
		if b.Synced() {
			b.Error("synced without a list")
		}
		want := []string{`nodes: not observed; EKCO retries every 1m0s (nodes is forbidden: RBAC says no)`}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		if got := b.Logged("cannot be listed"); got != 1 {
			b.Errorf("said %d times that nodes cannot be listed, want once:\n%s", got, b.Said)
		}
		if calls := b.TakeCalls(); len(calls) > 16 {
			b.Errorf("%d calls in ten minutes", len(calls))
		}
		b.Set(func() { clear(b.Forbidden) })
		b.Pass(time.Minute)
		b.Wrote("node.observed a 1 worker")
		b.Pass(6 * time.Minute)
		if absent := b.Absent(); len(absent) > 0 {
			b.Errorf("Absent is %q after everything was permitted", absent)
		}
	})
}

// TestAListThatIsPermittedAgainIsNoReasonToPoll: what is said of the watch is why it is
// forbidden, not why the list was.
func TestAListThatIsPermittedAgainIsNoReasonToPoll(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Streams = true
		b.Put(node("a", "1"))
		for _, verb := range []string{"list", "watch"} {
			b.Failing[verb+" nodes"] = fmt.Errorf("no %s: %w", verb, kube.ErrForbidden)
		}
	}, func(b *bench) {
		b.Pass(time.Minute)
		b.Set(func() { delete(b.Failing, "list nodes") })
		b.Pass(2 * time.Minute)
		want := []string{"nodes: watch is forbidden; EKCO polls every 1m0s (no watch: forbidden)"}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
	})
}

func TestNodesThatMayNoLongerBeObservedAreAnOutage(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Set(func() { b.Forbidden["watch nodes"], b.Forbidden["list nodes"] = true, true })
		b.BreakWatches()
		b.Pass(30 * time.Second)
		b.Wrote("api.lost nodes is forbidden: RBAC says no")
		if b.Synced() {
			b.Error("synced while nodes cannot be observed")
		}
		b.Set(func() { clear(b.Forbidden) })
		b.Pass(2 * time.Minute)
		b.Wrote("api.recovered lost at 00:00:00")
	})
}

// TestAResourceThatThereIsNotIsNoNews: unless it is one without which EKCO sees nothing.
func TestAResourceThatThereIsNotIsNoNews(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		gone := fmt.Errorf("the server could not find the requested resource: %w", kube.ErrNotFound)
		for _, resource := range []string{"nodes", "configmaps"} {
			b.Failing["list "+resource], b.Failing["watch "+resource] = gone, gone
		}
		b.Sources = func() []observers.Source { return append(b.Everything(), watchedLamps(b, nil)) }
	}, func(b *bench) {
		b.Pass(5 * time.Minute)
		want := []string{"nodes: not observed; EKCO retries every 1m0s (the server could not find the requested resource: not found)"}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		if got := b.Logged("cannot be listed"); got != 2 {
			b.Errorf("said %d times what cannot be listed, want once for each:\n%s", got, b.Said)
		}
	})
}

// Most clusters lack some add-ons and their roles, and the status lists those. What was read once is missed loudly.
func TestWhatMayNotBeReadIsLoggedQuietlyUnlessItWasReadOrIsEssential(t *testing.T) {
	forbid := func(b *bench, verbs ...string) {
		for _, verb := range verbs {
			b.Failing[verb+" configmaps"] = fmt.Errorf("no %s: %w", verb, kube.ErrForbidden)
		}
	}
	watching(t, func(b *bench, _ *observers.Options) {
		forbid(b, "list", "watch")
		b.Sources = func() []observers.Source { return append(b.Everything(), watchedLamps(b, nil)) }
	}, func(b *bench) {
		b.Pass(time.Minute)
		const quiet, loud = `level=DEBUG msg="the resource cannot be listed`, `level=INFO msg="the resource cannot be listed`
		if b.Logged(quiet) != 1 || b.Logged(loud) != 0 || len(b.Absent()) != 1 {
			b.Errorf("absent is %q, after\n%s", b.Absent(), b.Said)
		}
		b.Set(func() { clear(b.Failing) })
		b.Pass(6 * time.Minute)
		b.Set(func() { forbid(b, "list", "watch") })
		b.BreakWatches()
		b.Pass(6 * time.Minute)
		if b.Logged(quiet) != 1 || b.Logged(loud) != 1 {
			b.Errorf("of a lost permission it says\n%s", b.Said)
		}
	})
}
