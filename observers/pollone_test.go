package observers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// oneDesk polls the lamp "desk" by its name; changes look through the nudge.
func oneDesk(b *bench, nudge *observers.Nudge, known map[string]lamp) {
	b.Sources = func() []observers.Source {
		desk := observers.PollOne(observers.PolledOne[lamp]{
			Name: "desk lamps", Key: "desk", Noun: lamps(known), Interval: every,
			Get: func(ctx context.Context) (lamp, error) {
				got, err := b.Get(ctx, "configmaps", "desk")
				if err != nil {
					return lamp{}, err
				}
				o := got.(*corev1.ConfigMap)
				return lamp{string(o.UID), o.Data["burns"] == "yes"}, nil
			},
		})
		return append(b.Everything(), nudge.Over(desk)...)
	}
}

func TestOneObjectIsReadByItsNameAndItsAbsenceIsOneFact(t *testing.T) {
	var nudge observers.Nudge
	watching(t, func(b *bench, _ *observers.Options) { oneDesk(b, &nudge, nil) }, func(b *bench) {
		b.Pass(3 * every)
		b.Wrote()
		want := []string{"desk lamps: not observed; tried again every 10m0s (not there)"}
		if diff := cmp.Diff(want, b.Absent()); diff != "" || b.Logged("not observed until that changes") != 1 {
			b.Errorf("Absent (-want +got):\n%s\n%s", diff, b.Said)
		}
		b.Put(lampObject("desk", "2", "yes"))
		b.Pass(every + every/10)
		b.Wrote("node.observed desk 2 burns")
		b.Remove(lampObject("desk", "2", "yes"))
		b.Pass(2*every + every/2)
		b.Wrote("node.gone desk 2 deleted")
		b.Pass(every + every/10)
		if diff := cmp.Diff(want, b.Absent()); diff != "" {
			b.Errorf("Absent (-want +got):\n%s", diff)
		}
		b.Set(func() { b.Forbidden["get configmaps"] = true })
		b.Put(lampObject("desk", "3", "yes"))
		b.Pass(2 * every)
		b.Wrote()
		b.Set(func() { b.Forbidden["get configmaps"] = false })
		b.Pass(every + every/10)
		b.Wrote("node.observed desk 3 burns")
	})
}

func TestOneObjectThatWentWhileNobodyLookedIsGoneAtTheStart(t *testing.T) {
	var nudge observers.Nudge
	watching(t, func(b *bench, _ *observers.Options) {
		oneDesk(b, &nudge, map[string]lamp{"desk": {"1", true}})
	}, func(b *bench) { b.Wrote("node.gone desk 1 absent at start") })
}

func TestANudgeHasWhatEKCOChangedLookedAtAtOnce(t *testing.T) {
	var nudge observers.Nudge
	nudge.Look() // there is nobody yet
	watching(t, func(b *bench, _ *observers.Options) {
		oneDesk(b, &nudge, nil)
		b.Put(lampObject("desk", "2", "no"))
	}, func(b *bench) {
		b.Wrote("node.observed desk 2 dark")
		b.Put(lampObject("desk", "2", "yes"))
		b.Pass(time.Second)
		b.Wrote()
		nudge.Look()
		b.Settle()
		b.Wrote("node.observed desk 2 burns")
		if n := observerstest.Count(b.TakeCalls(), "get configmaps"); n != 2 {
			b.Errorf("asked %d times", n)
		}
	})
}
