package observers_test

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestATriggerHasAnotherLookWhenAnObjectChangesAndOnceMoreLater(t *testing.T) {
	for name, later := range map[string]time.Duration{"at once": 0, "and later": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			var looks atomic.Int64
			watching(t, func(b *bench, _ *observers.Options) {
				b.Sources = func() []observers.Source {
					return append(b.Everything(), observers.Trigger(observers.Triggering{
						Name: "pods of x", From: b.PodsLabelled("x", "app", "a"), Example: &corev1.Pod{},
						Changed: func() { looks.Add(1) }, Later: later,
					}))
				}
			}, func(b *bench) {
				looked := func(after time.Duration, want int64) {
					t.Helper()
					b.Pass(after)
					if got := looks.Swap(0); got != want {
						t.Errorf("looked %d times, want %d", got, want)
					}
				}
				once := map[bool]int64{true: 1}[later > 0]
				looked(time.Hour, 1+once)
				pod := func(version string) *corev1.Pod {
					return observerstest.Pod("x/one", "1", "a", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "a", "v": version} })
				}
				b.Put(pod("1"))
				looked(time.Second, 1)
				b.Put(pod("2"))
				looked(time.Second, 1-once) // so soon it waits
				looked(time.Minute, 2*once)
				for range 100 {
					b.Put(pod("2"))
					b.Pass(time.Second)
				}
				if got := looks.Swap(0); later > 0 && got > 21 || later == 0 && got != 100 {
					t.Errorf("while an object changed each second it looked %d times in 100 s", got)
				}
				b.Pass(time.Minute)
				if got := looks.Swap(0); later > 0 && got == 0 || got > 2*once {
					t.Errorf("after the last change it looked %d times", got)
				}
				b.Remove(pod("2"))
				looked(time.Hour, 1+once)
				b.Put(observerstest.Pod("x/other", "2", "a"), observerstest.Pod("y/other", "3", "a", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "a"} }))
				looked(time.Hour, 0)
				b.Put(pod("3"))
				b.Settle()
				b.Stop() // who has ended looks no more
				looks.Store(0)
				looked(time.Hour, 0)
				if !b.Synced() {
					t.Error("a trigger keeps EKCO from being in sync")
				}
			})
		})
	}
}

// TestATriggerLooksSeveralTimesLater, and anew from when something changed.
func TestATriggerLooksSeveralTimesLater(t *testing.T) {
	var looks atomic.Int64
	watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return append(b.Everything(), observers.Trigger(observers.Triggering{
				Name: "pods of x", From: b.PodsLabelled("x", "app", "a"), Example: &corev1.Pod{},
				Changed: func() { looks.Add(1) }, Later: 5 * time.Second, Times: 3,
			}))
		}
	}, func(b *bench) {
		looked := func(after time.Duration, want int64) {
			t.Helper()
			b.Pass(after)
			if got := looks.Swap(0); got != want {
				t.Errorf("looked %d times, want %d", got, want)
			}
		}
		pod := func(version string) *corev1.Pod {
			return observerstest.Pod("x/one", "1", "a", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "a", "v": version} })
		}
		looked(time.Hour, 4)
		b.Put(pod("1"))
		looked(time.Second, 1)
		b.Put(pod("2")) // so soon it waits
		looked(time.Second, 0)
		looked(4*time.Second, 1)
		looked(6*time.Second, 1)
		b.Put(pod("3")) // and later it does not
		looked(time.Second, 1)
		looked(time.Hour, 3)
		b.Put(pod("4"))
		b.Settle()
		b.Stop()
		looks.Store(0)
		looked(time.Hour, 0)
	})
}
