package observers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAForbiddenWatchIsPolledUntilItIsPermitted(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			watching(t, func(b *bench, _ *Options) {
				b.streams = streams
				b.put(node("a", "1"))
				b.forbidden["watch nodes"] = true
			}, func(b *bench) {
				b.wrote("node.observed a 1 worker")
				if !b.Synced() {
					b.Error("not synced by polling")
				}
				want := []string{`nodes: watch is forbidden; polled every 1m0s instead (nodes is forbidden: RBAC says no)`}
				if diff := cmp.Diff(want, b.Absent()); diff != "" {
					b.Errorf("Absent (-want +got):\n%s", diff)
				}
				b.takeCalls()

				b.put(node("a", "1", unreachable(time.Now())))
				b.pass(30 * time.Second)
				b.wrote()
				b.pass(31 * time.Second)
				b.wrote("node.observed a 1 worker unreachable since 00:00:00")
				b.pass(3 * time.Minute)
				b.called(map[string]int{"list nodes": 4})
				b.pass(3 * time.Minute)
				if got := b.takeCalls(); count(got, "watch nodes") != 1 {
					b.Errorf("calls after five minutes are %v, want one try to watch", got)
				}
				if got := b.logged("polling instead"); got != 1 {
					b.Errorf("said %d times that EKCO polls, want once:\n%s", got, b.log)
				}

				b.set(func() { b.forbidden["watch nodes"] = false })
				b.pass(6 * time.Minute)
				if got := b.open("nodes"); got != 1 {
					b.Fatalf("%d watches after the permission came, want 1", got)
				}
				if absent := b.Absent(); len(absent) > 0 {
					b.Errorf("Absent is %q while all is watched", absent)
				}
				b.put(node("b", "2"))
				b.settle()
				b.wrote("node.observed b 2 worker")
			})
		})
	}
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func TestNodesThatMayNotBeListedAreQuietlyAwaited(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"))
		b.forbidden["watch nodes"] = true
		b.forbidden["list nodes"] = true
	}, func(b *bench) {
		b.pass(10 * time.Minute)
		b.wrote()
		if b.Synced() {
			b.Error("synced without a list")
		}
		want := []string{`nodes: not observed; tried again every 1m0s (nodes is forbidden: RBAC says no)`}
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		if got := b.logged("cannot be listed"); got != 1 {
			b.Errorf("said %d times that nodes cannot be listed, want once:\n%s", got, b.log)
		}
		if calls := b.takeCalls(); len(calls) > 16 {
			b.Errorf("%d calls in ten minutes", len(calls))
		}
		b.set(func() { clear(b.forbidden) })
		b.pass(time.Minute)
		b.wrote("node.observed a 1 worker")
		b.pass(6 * time.Minute)
		if absent := b.Absent(); len(absent) > 0 {
			b.Errorf("Absent is %q after everything was permitted", absent)
		}
	})
}

func TestNodesThatMayNoLongerBeObservedAreAnOutage(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.set(func() { b.forbidden["watch nodes"], b.forbidden["list nodes"] = true, true })
		b.breakWatches()
		b.pass(30 * time.Second)
		b.wrote("api.lost nodes is forbidden: RBAC says no")
		if b.Synced() {
			b.Error("synced while nodes cannot be observed")
		}
		b.set(func() { clear(b.forbidden) })
		b.pass(2 * time.Minute)
		b.wrote("api.recovered lost at 00:00:00")
	})
}
